//! Faults that public reports found in other attention kernels, each with its right result.
//! The number in a name is the report's.

use wgpu_attention::{Align, Band, Error, Inputs, Layout, Operand, Problem, Shape};

use crate::checks::{EVERYTHING, FLASH, LSE, STAGED, answer, limited};
use crate::support::{Data, gpu, max_error};

const HIDE: f32 = f32::NEG_INFINITY;

/// A problem, how its random operands become the trigger, and which rows must be exactly 0.
struct Fault {
    name: &'static str,
    problem: Problem,
    trigger: fn(&mut Data),
    hidden: fn(usize) -> bool,
}

fn fault(name: &'static str, problem: Problem) -> Fault {
    Fault { name, problem, trigger: |_| {}, hidden: |_| false }
}

/// `[batch, q_heads, kv_heads, q_len, kv_len, head_dim, value_dim]`.
fn of([batch, heads, kv_heads, q_len, kv_len, dim, value_dim]: [u32; 7]) -> Problem {
    let shape = Shape::self_attention(batch, heads, q_len, dim).kv_heads(kv_heads);
    Problem::new(shape.kv_len(kv_len).value_dim(value_dim))
}

/// Sets the bias of some (query, key), for a bias `[q_len, kv_len]`.
fn hide(data: &mut Data, kv_len: usize, hidden: impl Fn(usize, usize) -> bool) {
    for (at, bias) in data.bias.as_mut().expect("a bias").iter_mut().enumerate() {
        *bias = if hidden(at / kv_len, at % kv_len) { HIDE } else { 0.0 };
    }
}

fn faults() -> Vec<Fault> {
    let long = |align| of([1, 1, 1, 2048, 1024, 8, 8]).causal().align(align);
    let cross = |align| of([4, 12, 12, 32, 1024, 64, 64]).causal().align(align);
    let one = |q_len, kv_len| of([1, 9, 3, q_len, kv_len, 8, 8]);
    vec![
        Fault {
            trigger: |data| hide(data, 8, |i, _| i >= 4),
            hidden: |i| i >= 4,
            ..fault("pytorch#103963", of([1, 1, 1, 8, 8, 8, 8]).bias_shape(&[8, 8]))
        },
        Fault {
            trigger: |data| hide(data, 4, |i, _| i == 1),
            hidden: |i| i == 1,
            ..fault("mlx#2395", of([1, 1, 1, 4, 4, 2, 2]).scale(1.0).bias_shape(&[4, 4]))
        },
        Fault {
            trigger: |data| data.bias.as_mut().expect("a bias")[..20].fill(f32::MIN),
            ..fault("pytorch#109517", of([1, 1, 1, 20, 20, 8, 8]).bias_shape(&[20, 20]))
        },
        Fault {
            trigger: |data| hide(data, 20, |_, j| j < 5),
            hidden: |i| i < 5,
            ..fault("burn#4697", of([1, 1, 1, 20, 20, 8, 8]).causal().bias_shape(&[20, 20]))
        },
        Fault {
            trigger: |data| hide(data, 20, |i, j| (i + j) % 3 == 0),
            ..fault("onnx#7865", of([1, 1, 1, 20, 20, 8, 8]).softcap(2.0).bias_shape(&[20, 20]))
        },
        Fault {
            trigger: |data| hide(data, 200, |_, j| j < 70 || j == 100),
            ..fault("llama.cpp#12776", of([1, 1, 1, 20, 200, 8, 8]).bias_shape(&[20, 200]))
        },
        Fault {
            trigger: |data| data.q.iter_mut().chain(&mut data.k).for_each(|x| *x *= 60.0),
            ..fault("llama.cpp#18969", of([1, 2, 2, 20, 90, 8, 8]))
        },
        fault("onnxruntime#28195", of([1, 8, 8, 6, 6, 512, 512]).scale(1.0).causal()),
        fault("llama.cpp#28124", of([1, 16, 1, 17, 40, 320, 256])),
        Fault {
            hidden: |i| i < 1024,
            ..fault("flash-attention#1778, bottom-right", long(Align::BottomRight))
        },
        fault("flash-attention#1778, top-left", long(Align::TopLeft)),
        fault("mlx#2835, bottom-right", cross(Align::BottomRight)),
        fault("mlx#2835, top-left", cross(Align::TopLeft)),
        fault("flash-attention#1537, 0 x 0", one(0, 0)),
        fault("flash-attention#1537, 1 x 3", one(1, 3)),
        fault("flash-attention#1537, 1 x 5", one(1, 5)),
        fault("candle#3388", of([1, 4, 1, 98, 1748, 128, 128]).causal().align(Align::Shift(1650))),
        fault("executorch#20583", of([1, 1, 1, 362, 362, 8, 8])),
        fault("pytorch#159247", of([1, 2, 2, 33, 97, 8, 8])),
    ]
}

#[test]
fn reported_faults_are_absent() {
    for Fault { name, problem, trigger, hidden } in faults() {
        let mut data = Data::new(&problem, 9);
        trigger(&mut data);
        let (want, [o, lse, _, weights]) = answer(&problem, data.inputs());
        let shape = problem.shape();
        let dim = shape.value_dim as usize;
        for (choice, wants) in [(FLASH, LSE), (STAGED, EVERYTHING)] {
            let problem = wants(problem.clone());
            let got = gpu().attention_with(&problem, data.inputs(), choice).expect(name);
            let error = max_error(&got.o, &want.o) / o;
            assert!(error <= 1.0, "{name}, {choice:?}: {error} times what is allowed");
            let error = max_error(&got.lse.unwrap(), want.lse.as_ref().unwrap()) / lse;
            assert!(error <= 1.0, "{name}, {choice:?}, LSE: {error} times what is allowed");
            for (row, o) in got.o.chunks(dim).enumerate() {
                let is_zero = o.iter().all(|&o| o == 0.0);
                let is_hidden = hidden(row % shape.q_len as usize);
                assert_eq!(is_zero, is_hidden, "{name}, {choice:?}, row {row}");
            }
            let Some(got) = got.weights else { continue };
            let want = want.weights.as_ref().unwrap();
            assert!(max_error(&got, want) <= weights, "{name}");
            let leak = got.iter().zip(want).find(|(got, want)| **want == 0.0 && **got != 0.0);
            assert_eq!(leak, None, "{name}: an excluded key has weight");
        }
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
    let masked: Vec<f32> =
        (0..N * N).map(|at| if at / N % 4 == at % 4 { HIDE } else { 0.0 }).collect();
    let window = |left, right| Band { left, right };
    type Sees = fn(usize, usize) -> bool;
    let rows: [(&str, Problem, Sees); 5] = [
        ("all", problem.clone(), |_, _| true),
        ("causal", problem.clone().causal(), |i, j| j <= i),
        ("left 3", problem.clone().band(window(Some(3), Some(0))), |i, j| j <= i && j + 3 >= i),
        ("right 31", problem.clone().band(window(None, Some(31))), |i, j| j <= i + 31),
        ("mask", problem.bias_shape(&[N as u32, N as u32]), |i, j| i % 4 != j % 4),
    ];
    for (name, problem, sees) in rows {
        let inputs = Inputs::new(&x.q, &x.k, &v);
        let inputs = if name == "mask" { inputs.bias(&masked) } else { inputs };
        for choice in [FLASH, STAGED] {
            let got = gpu().attention_with(&problem, inputs, choice).expect(name);
            for (i, o) in got.o.chunks(N).enumerate() {
                let n = (0..N).filter(|&j| sees(i, j)).count() as f32;
                for (j, &p) in o.iter().enumerate() {
                    let want = if sees(i, j) { 1.0 / n } else { 0.0 };
                    let right = (p - want).abs() <= 1e-6 * want;
                    assert!(right, "{name}, {choice:?}, {i}, {j}: {p}, not {want}");
                }
            }
        }
    }
}

/// pytorch#174861, mlx#4022: few queries and many keys, split and merged.
#[test]
fn split_keys_equal_one_sweep() {
    let problem = of([1, 32, 2, 1, 1024, 8, 8]);
    let (data, split) = (Data::new(&problem, 2), limited(1200));
    for choice in [FLASH, STAGED] {
        let plan = split.planner().plan_with(&problem, choice).expect("a good problem");
        assert!(plan.describe().split_keys.is_some_and(|keys| keys <= 512), "{choice:?}");
        let run = |gpu: &wgpu_attention::Gpu| gpu.attention_with(&problem, data.inputs(), choice);
        let (one, split) = (run(gpu()).expect("one sweep"), run(&split).expect("split"));
        let error = max_error(&one.o, &split.o);
        assert!(error <= 3e-6, "{choice:?}: {error}");
    }
}

/// flash-attention#895 and pytorch#181133: the same in other words gives the same bits.
#[test]
fn equal_problems_give_equal_bits() {
    let wide = of([1, 1, 1, 90, 33, 8, 8]);
    let bounded = |right| {
        let band = Band { left: None, right: Some(right) };
        wide.clone().band(band).align(Align::TopLeft)
    };
    let data = Data::new(&wide, 3);
    let head_major = of([84, 3, 3, 3, 3, 8, 8]);
    let token_major = [Operand::Q, Operand::K, Operand::V, Operand::O]
        .into_iter()
        .fold(head_major.clone(), |all, o| all.layout(o, Layout::token_major(3, 3, 8)));
    let rows = Data::new(&head_major, 4);
    // Three heads of three tokens: the same swap both ways.
    let swapped = |x: &[f32]| -> Vec<f32> {
        let row = |at: usize| &x[(at / 9 * 9 + at % 3 * 3 + at / 3 % 3) * 8..][..8];
        (0..x.len() / 8).flat_map(row).copied().collect()
    };
    let [q, k, v] = [&rows.q, &rows.k, &rows.v].map(|x| swapped(x));
    for choice in [FLASH, STAGED] {
        let run = |problem: &Problem, inputs| {
            gpu().attention_with(problem, inputs, choice).expect("a good call").o
        };
        let open = run(&wide, data.inputs());
        for right in [i32::MAX as u32, u32::MAX, 33] {
            assert!(run(&bounded(right), data.inputs()) == open, "right {right}, {choice:?}");
        }
        let contiguous = run(&head_major, rows.inputs());
        let permuted = run(&token_major, Inputs::new(&q, &k, &v));
        assert!(swapped(&permuted) == contiguous, "token-major, {choice:?}");
    }
}

/// exllamav3#316: four runs, one result.
#[test]
fn four_runs_give_one_result() {
    let problem = of([1, 2, 2, 512, 512, 40, 40]);
    let data = Data::new(&problem, 5);
    for choice in [FLASH, STAGED] {
        let run = || gpu().attention_with(&problem, data.inputs(), choice).expect("a good call");
        let first = run();
        assert!((0..3).all(|_| run() == first), "{choice:?}");
    }
}

/// What cannot be addressed or bound is an error, before anything is allocated.
#[test]
fn too_large_is_an_error() {
    let plan = |problem: &Problem, choice| gpu().planner().plan_with(problem, choice).map(|_| ());
    // pytorch#149261: stored scores of more than 2^31 bytes.
    let long = of([1, 1, 1, 29_640, 29_640, 8, 8]);
    assert_eq!(plan(&long, FLASH), Ok(()));
    let most = gpu().device().limits().max_storage_buffer_binding_size;
    let stored = plan(&long, STAGED);
    if most < 29_640 * 29_640 * 4 {
        assert!(matches!(stored, Err(Error::Limit { .. })), "{stored:?}");
    }
    // mlx#2894: a mask of 46,342^2, then one past 2^32 elements.
    let masked = |n: u32| of([1, 1, 1, n, n, 8, 8]).bias_shape(&[n, n]);
    let bound = plan(&masked(46_342), FLASH);
    if most < 46_342 * 46_342 * 4 {
        assert!(matches!(bound, Err(Error::Limit { what: "bias", .. })), "{bound:?}");
    }
    let past = plan(&masked(70_000), FLASH);
    assert!(matches!(past, Err(Error::Size { .. } | Error::Broadcast { .. })), "{past:?}");
    // mlx#2835: alignment is asked for, not guessed.
    let unaligned = plan(&of([4, 12, 12, 32, 1024, 64, 64]).causal(), FLASH);
    assert_eq!(unaligned, Err(Error::Align { q_len: 32, kv_len: 1024 }));
}
