//! Faults that public reports found in other attention kernels, each with its right result.
//! The number in a name is the report's. Elsewhere: what tanh does far out in `numerics`, more
//! batches and heads than a grid is wide in `parity`.

mod bits;
pub mod files;
mod rows;

use wgpu_attention::{Band, Inputs, Problem, Shape};

use crate::checks::{Checked, answer};
use crate::kernels::Walk;
use crate::support::Data;
use rows::Report;

const HIDE: f32 = f32::NEG_INFINITY;

/// `[batch, q_heads, kv_heads, q_len, kv_len, head_dim, value_dim]`.
fn of([batch, heads, kv_heads, q_len, kv_len, dim, value_dim]: [u32; 7]) -> Problem {
    let shape = Shape::self_attention(batch, heads, q_len, dim).kv_heads(kv_heads);
    Problem::new(shape.kv_len(kv_len).value_dim(value_dim))
}

#[test]
fn reported_faults_are_absent() {
    reported_faults(Walk::in_turn("reported faults"));
}

pub fn reported_faults(mut walk: Walk) {
    for Report { case, trigger, hidden } in rows::all() {
        let mut data = Data::new(&case.problem, 9);
        trigger(&mut data);
        data = data.rounded(case.types);
        data.given = case.given.clone();
        let (reference, tolerance) = answer(&case.problem, data.inputs());
        let name = case.name.clone();
        assert!(reference.o.iter().all(|o| o.is_finite()), "{name}: the reference");
        let checked = Checked { case, data, reference, tolerance };
        walk.each(&checked.stored_problem(), |kernel| {
            let problem = (kernel.wants)(checked.case.problem.clone());
            let got = checked.run(kernel.gpu(), &problem, kernel.choice());
            let got = pollster::block_on(got).expect(&name);
            let (error, kernel) = (checked.compare(&problem, &got), kernel.name);
            assert!(error <= 1.0, "{name}, {kernel}: {error} times what is allowed");
            let shape = problem.shape();
            for (row, o) in got.o.chunks(shape.value_dim as usize).enumerate() {
                let is_zero = o.iter().all(|&o| o == 0.0);
                let is_hidden = hidden(row % shape.q_len as usize);
                assert_eq!(is_zero, is_hidden, "{name}, {kernel}, row {row}");
            }
            let Some(got) = got.weights else { return };
            let want = checked.reference.weights.as_ref().expect("wanted");
            let leak = got.iter().zip(want).find(|(got, want)| **want == 0.0 && **got != 0.0);
            assert_eq!(leak, None, "{name}: an excluded key has weight");
        });
    }
}

/// With V the identity, O is the weights: every key counts exactly once or not at all, at tile
/// edges (tt-metal#54833, onnxruntime#28520) and at the edges of a window (zml#763).
#[test]
fn every_key_counts_once() {
    const N: usize = 40;
    let problem = of([1, 1, 1, N as u32, N as u32, N as u32, N as u32]).scale(0.0);
    let x = Data::new(&problem, 1);
    let v: Vec<f32> = (0..N * N).map(|at| if at / N == at % N { 1.0 } else { 0.0 }).collect();
    let bools: Vec<bool> = (0..N * N).map(|at| at / N % 4 != at % 4).collect();
    let masked: Vec<f32> = bools.iter().map(|&may| if may { 0.0 } else { HIDE }).collect();
    let window = |left, right| Band { left, right };
    type Sees = fn(usize, usize) -> bool;
    let rows: [(&str, Problem, Sees); 6] = [
        ("all", problem.clone(), |_, _| true),
        ("causal", problem.clone().causal(), |i, j| j <= i),
        ("left 3", problem.clone().band(window(Some(3), Some(0))), |i, j| j <= i && j + 3 >= i),
        ("right 31", problem.clone().band(window(None, Some(31))), |i, j| j <= i + 31),
        ("bias", problem.clone().bias_shape(&[N as u32; 2]), |i, j| i % 4 != j % 4),
        ("mask", problem.mask_shape(&[N as u32; 2]), |i, j| i % 4 != j % 4),
    ];
    let mut walk = Walk::in_turn("every key counts once");
    for (name, problem, sees) in rows {
        let inputs = Inputs::new(&x.q, &x.k, &v);
        let inputs = match name {
            "bias" => inputs.bias(&masked),
            "mask" => inputs.mask(&bools),
            _ => inputs,
        };
        walk.each(&problem, |kernel| {
            let got = kernel.run(&problem, inputs);
            for (i, o) in got.o.chunks(N).enumerate() {
                let n = (0..N).filter(|&j| sees(i, j)).count() as f32;
                for (j, &p) in o.iter().enumerate() {
                    let want = if sees(i, j) { 1.0 / n } else { 0.0 };
                    let right = (p - want).abs() <= 1e-6 * want;
                    assert!(right, "{name}, {}, {i}, {j}: {p}, not {want}", kernel.name);
                }
            }
        });
    }
}

/// modular#6591: with scores of 0 and values of 1 a row is n / (n + exp(sink)), with its own head's
/// sink in every row of a tile.
#[test]
fn a_sink_takes_its_share() {
    let problem = of([1, 3, 1, 5, 4, 8, 8]).sinks();
    let (q, k, v) = ([0.0; 3 * 5 * 8], Data::new(&problem, 6).k, [1.0; 4 * 8]);
    let sinks = [2.228f32, 0.0, -3.0];
    let inputs = Inputs::new(&q, &k, &v).sinks(&sinks);
    Walk::new("sinks").each(&problem, |kernel| {
        for (head, o) in kernel.run(&problem, inputs).o.chunks(5 * 8).enumerate() {
            let want = 4.0 / (4.0 + sinks[head].exp());
            let right = o.iter().all(|o| (o - want).abs() <= 5e-7);
            assert!(right, "{}, head {head}: {o:?}, not {want}", kernel.name);
        }
    });
}
