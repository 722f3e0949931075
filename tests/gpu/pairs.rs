//! Every value of every option together with every value of every other, in a few hundred problems
//! drawn from a seed: what options do to each other.

use std::collections::BTreeSet;

use rand::{Rng, SeedableRng, rngs::StdRng};
use wgpu_attention::Element::{Bf16, F16, F32};
use wgpu_attention::{
    Align, Band, BiasLayout, Choice, Error, Gpu, Layout, Method, Operand, Problem, Shape,
};

use crate::checks::{Checked, EVERYTHING, LSE, NOTHING, STAGED, Wants, limited};
use crate::kernels::{DECODE, broadcast};
use crate::support::{default_limits_gpu, gpu};
use wgpu_attention_support::answers::TILE;
use wgpu_attention_support::cases::{Case, case};

/// How many problems, at least.
const ROWS: usize = 320;
/// Kernels take far longer to compile than to run here: rows share as many as these combinations.
const KERNELS: usize = 40;

/// What a row chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Axis {
    Sequences,
    Mask,
    Bias,
    Band,
    Align,
    Softcap,
    Scale,
    Alibi,
    Sinks,
    Batch,
    Heads,
    Lengths,
    Dims,
    Layout,
    Types,
    Outputs,
    Kernel,
}

const VALUES: [usize; 17] = [5, 6, 4, 5, 4, 3, 4, 3, 3, 2, 3, 5, 2, 3, 4, 3, 6];

/// Of the kernels, the first so many are fused.
const FUSED: usize = 4;

type Row = [usize; VALUES.len()];
/// Two options and the values of both.
type Pair = [(usize, usize); 2];

/// Whether a key of a mask's row may be attended to.
type May = fn(usize, usize) -> bool;

fn of(row: &Row, axis: Axis) -> usize {
    row[axis as usize]
}

fn pairs(row: &Row) -> impl Iterator<Item = Pair> + '_ {
    let cells = || row.iter().copied().enumerate();
    cells().flat_map(move |a| cells().filter(move |b| b.0 > a.0).map(move |b| [a, b]))
}

/// The fused kernels form no scores; packed sequences are one batch entry.
fn is_legal(pair: Pair) -> bool {
    let has = |option, values: std::ops::Range<usize>| {
        pair.iter().any(|&(at, value)| at == option as usize && values.contains(&value))
    };
    !(has(Axis::Outputs, 2..3) && has(Axis::Kernel, 0..FUSED)
        || has(Axis::Sequences, 3..5) && has(Axis::Batch, 1..2))
}

/// What of a value decides on the kernels.
fn kind(axis: usize, value: usize) -> usize {
    const ONE_OR_NONE: [usize; 4] =
        [Axis::Mask as usize, Axis::Bias as usize, Axis::Alibi as usize, Axis::Sinks as usize];
    const ALL: [usize; 4] =
        [Axis::Dims as usize, Axis::Types as usize, Axis::Outputs as usize, Axis::Kernel as usize];
    match axis {
        _ if axis == Axis::Sequences as usize => value.min(3),
        _ if ONE_OR_NONE.contains(&axis) => value.min(1),
        _ if ALL.contains(&axis) => value,
        _ => 0,
    }
}

fn kinds(row: &Row) -> Row {
    std::array::from_fn(|axis| kind(axis, row[axis]))
}

/// Rows from `draw`, each the best of many, until their `view`s have every legal pair, and then
/// until there are `least`.
fn cover(least: usize, view: fn(&Row) -> Row, mut draw: impl FnMut() -> Row) -> Vec<Row> {
    let mut missing: BTreeSet<Pair> = (0..VALUES.len())
        .flat_map(|a| (a + 1..VALUES.len()).map(move |b| (a, b)))
        .flat_map(|(a, b)| (0..VALUES[a]).map(move |x| (a, b, x)))
        .flat_map(|(a, b, x)| (0..VALUES[b]).map(move |y| [(a, x), (b, y)]))
        .filter(|&pair| is_legal(pair))
        .map(|pair| {
            let all = pair.into_iter().fold([0; VALUES.len()], |mut row, (axis, value)| {
                row[axis] = value;
                row
            });
            pair.map(|(axis, _)| (axis, view(&all)[axis]))
        })
        .collect();
    let mut rows = Vec::new();
    while rows.len() < least || !missing.is_empty() {
        let new = |row: &Row| pairs(&view(row)).filter(|pair| missing.contains(pair)).count();
        let drawn = (0..200).map(|_| draw()).filter(|row| pairs(row).all(is_legal));
        let Some(best) = drawn.max_by_key(new) else { continue };
        pairs(&view(&best)).for_each(|pair| {
            missing.remove(&pair);
        });
        rows.push(best);
    }
    rows
}

/// Few combinations of kernels that have every pair of kinds; of those, rows that have every pair.
fn rows() -> Vec<Row> {
    let mut rng = StdRng::seed_from_u64(1);
    let kernels = cover(0, kinds, || VALUES.map(|n| rng.random_range(0..n)));
    cover(ROWS, Row::clone, || {
        let like = kernels[rng.random_range(0..kernels.len())];
        std::array::from_fn(|axis| {
            loop {
                let value = rng.random_range(0..VALUES[axis]);
                if kind(axis, value) == kind(axis, like[axis]) {
                    break value;
                }
            }
        })
    })
}

/// The problem of a row, and its data.
fn build(row: &Row) -> Case {
    let is_packed = of(row, Axis::Sequences) >= 3;
    let [q_heads, kv_heads] = [[1, 1], [4, 2], [3, 1]][of(row, Axis::Heads)];
    let [q_len, kv_len] =
        [[1, 140], [21, 75], [40, 40], [33, 65], [64, 129]][of(row, Axis::Lengths)];
    let [head_dim, value_dim] = [[8, 8], [6, 10]][of(row, Axis::Dims)];
    let batch = [1, 3][of(row, Axis::Batch)];
    let shape = Shape { batch, q_heads, kv_heads, q_len, kv_len, head_dim, value_dim };
    let band = |left, right| Band { left, right };
    let bands = [
        band(None, None),
        Band::CAUSAL,
        band(Some(9), Some(3)),
        band(Some(30), None),
        band(None, Some(40)),
    ];
    let aligns = [Align::TopLeft, Align::BottomRight, Align::Shift(7), Align::Shift(-20)];
    let mut problem = Problem::new(shape)
        .band(bands[of(row, Axis::Band)])
        .align(aligns[of(row, Axis::Align)])
        .softcap([0.0, 2.0, 30.0][of(row, Axis::Softcap)]);
    problem = match of(row, Axis::Scale) {
        0 => problem,
        at => problem.scale([0.0, -0.5, 2.0][at - 1]),
    };
    problem = match of(row, Axis::Bias) {
        0 => problem,
        1 => problem.bias_shape(&[q_len, kv_len]),
        2 => problem.bias_shape(&[batch, q_heads, 1, kv_len]),
        _ => {
            problem.bias(BiasLayout { offset: 3, head: 2, query: 5, key: 1, ..Default::default() })
        }
    };
    for operand in [Operand::Q, Operand::K, Operand::V, Operand::O] {
        let (heads, tokens, dim) = match operand {
            Operand::Q => (q_heads, q_len, head_dim),
            Operand::K => (kv_heads, kv_len, head_dim),
            Operand::V => (kv_heads, kv_len, value_dim),
            _ => (q_heads, q_len, value_dim),
        };
        problem = match of(row, Axis::Layout) {
            0 => problem,
            1 => problem.layout(operand, Layout::token_major(heads, tokens, dim)),
            _ => problem.layout(operand, Layout::head_major(heads, tokens, dim + 4).at(8)),
        };
    }
    let mut case = Case { excluded: 6, ..case(format!("{row:?}"), problem) };
    case = match of(row, Axis::Sequences) {
        0 => case,
        1 => case.q_lens(&[q_len / 2, q_len, 1]).kv_lens(&[kv_len, 0, kv_len / 2]),
        2 => case.kv_lens(&[kv_len - 1, 1, kv_len / 2]),
        3 => case.packed(&[0, q_len / 3, q_len], &[0, kv_len / 2, kv_len]),
        _ => case.packed(
            &[0, 0, 1, q_len.div_ceil(2), q_len.div_ceil(2)],
            &[0, 5, 5, kv_len - 2, kv_len - 1],
        ),
    };
    if !is_packed {
        [&mut case.given.q_lens, &mut case.given.kv_lens]
            .into_iter()
            .flatten()
            .for_each(|lens| lens.truncate(batch as usize));
    }
    let mask: Option<(&[u32], May)> = match of(row, Axis::Mask) {
        0 | 5 => None,
        1 => Some((&[q_len, kv_len], |i, j| (7 * i + 5 * j) % 3 != 0)),
        2 => Some((&[q_len, kv_len], |i, j| (i + j / 32) % 2 == 0)),
        3 => Some((&[batch, q_heads, q_len, kv_len], |row, j| row % 3 != 0 && j % 7 != 0)),
        _ => Some((&[batch, 1, 1, kv_len], |batch, j| j % (batch + 2) != 0)),
    };
    case = match mask {
        Some((shape, may)) => case.masked(shape, may),
        None if of(row, Axis::Mask) == 5 => {
            case.masked_by(BiasLayout { offset: 1, query: 3, key: 1, ..Default::default() }, 4)
        }
        None => case,
    };
    case = match of(row, Axis::Alibi) {
        0 => case,
        1 => case.alibi(&[0.5, 0.0, 0.125]),
        _ => case.alibi(&[-0.05, 0.25]),
    };
    case = match of(row, Axis::Sinks) {
        0 => case,
        1 => case.sinks(&[0.5, -1.0, 3.0]),
        _ => case.sinks(&[f32::NEG_INFINITY, 100.0]),
    };
    case.poisoned = of(row, Axis::Layout) == 0;
    let [queries, keys] = [[F32, F32], [F32, F16], [F16, F16], [Bf16, Bf16]][of(row, Axis::Types)];
    case.stored_as(queries, keys)
}

#[test]
#[ignore = "exhaustive"]
fn exhaustive_every_pair_of_options() {
    let rows = rows();
    let [few, default] = [&limited(700), default_limits_gpu()];
    let tile = Choice::tile(TILE);
    let runs: [(&Gpu, Choice); 6] = [
        (gpu(), tile),
        (few, tile),
        (gpu(), DECODE),
        (gpu(), broadcast(1, 8)),
        (default, STAGED),
        (few, STAGED),
    ];
    let wants: [Wants; 3] = [NOTHING, LSE, EVERYTHING];
    let (mut split, mut lacking, mut worst, mut wrong) = (0, 0, 0.0f32, Vec::new());
    for row in &rows {
        let checked = Checked::new(build(row));
        let problem = wants[of(row, Axis::Outputs)](checked.case.problem.clone());
        let (gpu, choice) = runs[of(row, Axis::Kernel)];
        if std::ptr::eq(gpu, few) {
            // On a device every mask is by shape.
            let shape = problem.shape();
            let planned = match of(row, Axis::Mask) {
                5 => problem.clone().mask_shape(&[shape.q_len, shape.kv_len]),
                _ => problem.clone(),
            };
            let plan = gpu.planner().plan_with(&planned, choice).expect("a plan");
            split += usize::from(plan.describe().split_keys.is_some());
        }
        match pollster::block_on(checked.run(gpu, &problem, choice)) {
            Ok(got) => {
                let error = checked.compare(&problem, &got);
                worst = worst.max(error);
                if error > 1.0 {
                    wrong.push(format!("{row:?}: {error} times what is allowed"));
                }
            }
            // Without subgroups there is no `broadcast`.
            Err(Error::Limit { .. }) if choice.method == Some(Method::Broadcast) => lacking += 1,
            Err(error) => wrong.push(format!("{row:?}: {error}")),
        }
    }
    let seen: BTreeSet<Pair> = rows.iter().flat_map(pairs).collect();
    let all: usize = (0..VALUES.len())
        .flat_map(|a| (a + 1..VALUES.len()).map(move |b| VALUES[a] * VALUES[b]))
        .sum();
    let combined: BTreeSet<Row> = rows.iter().map(kinds).collect();
    println!(
        "{} problems, {} pairs of {all}, {} combinations of kernels, {split} split, {lacking} without \
         their kernel, worst {worst:.2}",
        rows.len(),
        seen.len(),
        combined.len(),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Fused kernels with stored scores, two kinds of packed sequences in a larger batch.
    assert_eq!(seen.len(), all - FUSED - 2);
    for (at, &n) in VALUES.iter().enumerate() {
        assert!((0..n).all(|value| rows.iter().any(|row| row[at] == value)), "option {at}");
    }
    assert!(rows.len() >= ROWS && combined.len() <= KERNELS && split > 50);
}
