//! Every kernel computes what the CPU reference computes, on every case; and the same bits
//! whenever it computes the same.

pub mod splits;

use wgpu_attention::{
    Align, Choice, Gpu, Inputs, Layout, LoopLimit, Operand, Output, Problem, Shape, Tile, cpu,
};

use crate::checks::{
    Checked, EVERYTHING, FLASH, LSE, NOTHING, Run, STAGED, Wants, part, some_of_all, table,
};
use crate::kernels::{DECODE, Walk};
use crate::support::{Data, default_limits_gpu, device, gpu, max_error, normal};
use wgpu_attention_support::cases::{self, Case};

#[test]
fn fused() {
    for (number, (name, choice)) in [("flash", FLASH), ("decode", DECODE)].into_iter().enumerate() {
        let run = Run { name, gpu: gpu(), choice, wants: LSE };
        let [ran, skipped] = run.check(part(number, choice));
        assert!(ran > 50 && skipped == 0, "{name}: {ran} ran, {skipped} skipped");
    }
}

#[test]
fn staged() {
    for (number, name, wants) in [(2, "staged, all outputs", EVERYTHING), (3, "staged", NOTHING)] {
        let run = Run { name, gpu: gpu(), choice: STAGED, wants };
        let [ran, skipped] = run.check(part(number, STAGED));
        assert!(ran > 50 && skipped == 0, "{name}: {ran} ran, {skipped} skipped");
    }
}

/// Another tile, and f16 in words: cases of all operands, dims and types.
#[test]
fn default_limits() {
    let some = || {
        let differs = |name: &str| {
            let dims = ["head_dim 64, value_dim 64", "head_dim 129"];
            some_of_all(name)
                || dims.iter().any(|dim| name.starts_with(dim))
                || name.starts_with("quads, ")
        };
        table().iter().filter(move |checked| differs(&checked.case.name))
    };
    default_limits_on(some);
}

pub fn default_limits_on<'c, I: Iterator<Item = &'c Checked>>(cases: impl Fn() -> I) {
    let all = cases().count();
    assert!(all > 15, "{all} cases");
    for (name, choice, wants) in [("fused", FLASH, LSE), ("staged", STAGED, EVERYTHING)] {
        let name = &format!("{name}, default limits");
        let run = Run { name, gpu: default_limits_gpu(), choice, wants };
        assert_eq!(run.check(cases()), [all, 0]);
    }
}

#[test]
fn explicit_tiles() {
    for (queries, keys) in [(4, 16), (16, 64), (64, 32)] {
        let choice = Choice::tile(Tile { queries, keys });
        let name = &format!("fused, tile {queries} x {keys}");
        let run = Run { name, gpu: gpu(), choice, wants: LSE };
        // A tile changes how rows and keys are walked, not what a score is made of.
        let walks = ["packed, everything", "129 x 33, left"];
        let some = |c: &&Checked| walks.iter().any(|walk| c.case.name.starts_with(walk));
        let [ran, _] = run.check(table().iter().filter(some));
        assert!(ran >= 2 || gpu().device().limits().max_compute_invocations_per_workgroup < 128);
    }
}

/// Cases of a bias that excludes keys.
const EXCLUDING: usize = 7;

/// Outputs beside O need kernels of their own: one at a time.
#[test]
fn single_outputs() {
    let some = || table().iter().filter(|checked| checked.case.name.contains("excludes"));
    let wants: [(&str, Wants); 3] =
        [("lse", Problem::lse), ("scores", Problem::scores), ("weights", Problem::weights)];
    for (name, wants) in wants {
        let name = &format!("staged, {name}");
        let counts = Run { name, gpu: gpu(), choice: STAGED, wants }.check(some());
        assert_eq!(counts, [EXCLUDING, 0], "{name}");
    }
    for (name, choice) in [("flash", FLASH), ("decode", DECODE)] {
        let name = &format!("{name}, only O");
        let counts = Run { name, gpu: gpu(), choice, wants: NOTHING }.check(some());
        assert_eq!(counts, [EXCLUDING, 0], "{name}");
    }
}

/// A device that allows 7 workgroups a dimension and bindings of 256 KiB: grids fold into y and
/// z, and partial results of split keys find room only in rounds.
#[test]
fn folded_grids_and_rounds() {
    let limits = wgpu::Limits {
        max_compute_workgroups_per_dimension: 7,
        max_storage_buffer_binding_size: 256 << 10,
        ..Default::default()
    };
    let (device, queue) = device(limits);
    let whole = Gpu::from_device(device, queue);
    let split = whole.planner().clone().with_loop_limit(LoopLimit::Iterations(300));
    let split = whole.clone().with_attention(split);
    let case = |name: &str, [heads, q_len]: [u32; 2]| {
        let shape = Shape::self_attention(1, heads, q_len, 8).kv_len(150);
        cases::case(name, Problem::new(shape).causal().align(Align::BottomRight))
    };
    let (many, few) = (case("90 tiles", [30, 130]), case("300 rows", [5, 60]));
    let [q, kv] = [[0, 40, 41, 41, 128], [0, 60, 60, 70, 150]];
    let packed =
        Checked::new(Case { name: "90 packed tiles".into(), ..many.clone() }.packed(&q, &kv));
    let [many, few] = [many, few].map(Checked::new);
    let mut dispatches = Vec::new();
    for (name, gpu, choice, wants, checked) in [
        ("fused, folded", &whole, FLASH, LSE, &many),
        ("fused, rounds", &split, FLASH, LSE, &many),
        ("fused, folded, packed", &whole, FLASH, LSE, &packed),
        ("fused, rounds, packed", &split, FLASH, LSE, &packed),
        ("staged, folded", &whole, STAGED, EVERYTHING, &few),
        ("staged, rounds", &split, STAGED, EVERYTHING, &few),
    ] {
        assert_eq!(Run { name, gpu, choice, wants }.check([checked]), [1, 0]);
        let plan = gpu.planner().plan_with(&wants(checked.case.problem.clone()), choice);
        let steps = plan.expect(name).describe().dispatches;
        let side = steps.iter().flat_map(|step| step.grid).max();
        assert!(side <= Some(7), "{name}: {side:?}");
        assert!(steps.iter().any(|step| step.grid[1] > 1), "{name}");
        dispatches.push((steps.len(), steps.iter().any(|step| step.grid[2] > 1)));
    }
    assert!(dispatches[0] == (1, true) && dispatches[1].0 > 4, "{dispatches:?}");
    assert!(dispatches[2] == (1, true) && dispatches[3].0 > 4, "{dispatches:?}");
    assert!(dispatches[4] == (3, true) && dispatches[5].0 > 3, "{dispatches:?}");
}

/// More batches, or heads, than a dimension of the grid has on any device (pytorch#146704,
/// #142228). Small tiles: a workgroup has next to nothing to do.
#[test]
fn seventy_thousand() {
    let shape = Shape::self_attention(1, 1, 1, 2).kv_len(3);
    let batches = Shape { batch: 70_000, ..shape };
    let heads = Shape { q_heads: 70_000, kv_heads: 35_000, ..shape };
    let fused = Choice::tile(Tile { queries: 4, keys: 4 });
    for (name, shape, choice, wants) in [
        ("fused, 70,000 batches", batches, fused, LSE),
        ("fused, 70,000 heads", heads, fused, LSE),
        ("staged, 70,000 heads", heads, STAGED, EVERYTHING),
    ] {
        let checked = Checked::new(cases::case(name, Problem::new(shape)));
        assert_eq!(Run { name, gpu: gpu(), choice, wants }.check([&checked]), [1, 0]);
    }
    let lens: Vec<u32> = (0..70_000).map(|batch| batch % 4).collect();
    let queries: Vec<u32> = (0..70_000).map(|batch| batch / 4 % 2).collect();
    let case = cases::case("70,000 lengths", Problem::new(batches)).kv_lens(&lens).q_lens(&queries);
    let run = Run { name: "fused, 70,000 lengths", gpu: gpu(), choice: fused, wants: LSE };
    assert_eq!(run.check([&Checked::new(case.poisoned())]), [1, 0]);
}

/// What a layout skips is 0 in what a host call returns, and what it does not skip is written.
#[test]
fn gaps_stay_zero() {
    let shape = Shape::self_attention(2, 3, 5, 8).kv_len(9);
    let to = |offset, batch, head, token| Layout { offset, batch, head, token };
    let layouts = [
        (Operand::O, to(8, 500, 100, 16), 8),
        (Operand::Lse, to(3, 100, 1, 5), 1),
        (Operand::Scores, to(1, 300, 10, 33), 9),
        (Operand::Weights, to(4, 900, 50, 9), 9),
    ];
    let problem = layouts
        .iter()
        .fold(EVERYTHING(Problem::new(shape)), |problem, row| problem.layout(row.0, row.1));
    let data = Data::new(&problem, 1);
    let gpu = gpu().clone();
    // Leaves a buffer of the size of O for the next call, with numbers all over it.
    let dense = u32::try_from(problem.elements(Operand::O)).expect("few");
    let ones = vec![1.0; dense as usize];
    let dense = Problem::new(Shape::self_attention(1, 1, dense, 1).kv_len(1));
    let full = gpu.attention(&dense, Inputs::new(&ones, &ones[..1], &ones[..1]));
    assert_eq!(full.expect("a good call").o, ones);
    let output = gpu.attention(&problem, data.inputs()).expect("a good call");
    let parts = [Some(output.o), output.lse, output.scores, output.weights];
    for ((operand, at, inner), part) in layouts.into_iter().zip(parts) {
        let part = part.expect("wanted");
        let mut written = vec![false; problem.elements(operand) as usize];
        for (b, h, i) in (0..30).map(|row| (row / 15, row / 5 % 3, row % 5)) {
            let start = (at.offset + b * at.batch + h * at.head + i * at.token) as usize;
            written[start..start + inner].fill(true);
        }
        assert_eq!(part.len(), written.len(), "{operand}");
        assert_eq!(written.iter().filter(|&&w| w).count(), 30 * inner, "{operand}");
        for (at, (x, written)) in part.iter().zip(written).enumerate() {
            assert_eq!(*x != 0.0, written, "{operand} {at}: {x}");
        }
    }
}

/// Nothing to do, or nothing to see, is no error: with a bias, too, that has no elements.
#[test]
fn empty_calls_with_a_bias() {
    for [batch, q_len, kv_len] in [[0, 5, 5], [2, 0, 5], [2, 5, 0]] {
        let shape = Shape { batch, ..Shape::self_attention(1, 1, q_len, 8).kv_len(kv_len) };
        let problem = EVERYTHING(Problem::new(shape).bias_shape(&[batch, 1, q_len, kv_len]));
        let operand = |operand| normal(problem.elements(operand) as usize, 12);
        let [q, k, v] = [Operand::Q, Operand::K, Operand::V].map(operand);
        let inputs = Inputs::new(&q, &k, &v).bias(&[]);
        let want = cpu::attention(&problem, inputs).expect("a good call");
        assert!(want.o.iter().all(|&o| o == 0.0));
        assert_eq!(gpu().attention(&problem, inputs).as_ref(), Ok(&want), "{shape:?}");
    }
}

/// Q, K and V in one slice that is longer than each of their layouts needs.
#[test]
fn one_packed_slice() {
    let [q, k, v] = [0, 1, 2].map(|part| cases::packed_rows(part, 3, 4, 29, 8));
    let problem = Problem::new(Shape::self_attention(2, 4, 29, 8)).causal();
    let separate = {
        let layouts = [(Operand::Q, q), (Operand::K, k), (Operand::V, v)];
        layouts.into_iter().fold(problem, |problem, (o, layout)| problem.layout(o, layout))
    };
    let x = normal(2 * 29 * 3 * 4 * 8, 11);
    let inputs = Inputs::new(&x, &x, &x);
    let want = cpu::attention(&separate, inputs).expect("a good call");
    Walk::new("one packed slice").each(&separate, |kernel| {
        let error = max_error(&kernel.run(&separate, inputs).o, &want.o);
        assert!(error < 4e-6, "{}: {error}", kernel.name);
    });
}

fn bits(output: &Output) -> Vec<u32> {
    let parts =
        [Some(&output.o), output.lse.as_ref(), output.scores.as_ref(), output.weights.as_ref()];
    parts.into_iter().flatten().flatten().map(|x| x.to_bits()).collect()
}

#[test]
fn two_runs_give_the_same_bits() {
    let mut walk = Walk::new("two runs");
    for checked in table().iter().filter(|checked| checked.case.name.contains("65, left")) {
        walk.each(&checked.case.problem, |kernel| {
            let run = || bits(&kernel.run(&checked.case.problem, checked.data.inputs()));
            assert!(run() == run(), "{}: {}", kernel.name, checked.case.name);
        });
    }
}

/// A head alone gives the bits that it gives among others.
#[test]
fn neighbours_change_nothing() {
    let (q_len, kv_len) = (37, 150);
    let shape = Shape::self_attention(3, 4, q_len, 8).kv_heads(2).kv_len(kv_len);
    let options = |problem: Problem| problem.causal().align(Align::BottomRight);
    let (all, one) = (shape, Shape { batch: 1, q_heads: 1, kv_heads: 1, ..shape });
    let [all, one] = [all, one].map(|shape| options(Problem::new(shape)));
    let data = Data::new(&all, 5);
    Walk::new("neighbours").each(&all, |kernel| {
        let among = kernel.run(&all, data.inputs());
        for [batch, head] in [[0, 0], [1, 2], [2, 3]] {
            let (row, kv) = ((4 * batch + head) as usize, (2 * batch + head / 2) as usize);
            let part = |x: &[f32], at: usize, n: u32| x[at * n as usize..][..n as usize].to_vec();
            let (q, k) = (part(&data.q, row, q_len * 8), part(&data.k, kv, kv_len * 8));
            let v = part(&data.v, kv, kv_len * 8);
            let got = kernel.run(&one, Inputs::new(&q, &k, &v));
            let mut want = got.clone();
            want.o = part(&among.o, row, q_len * 8);
            want.lse = among.lse.as_ref().map(|x| part(x, row, q_len));
            want.scores = among.scores.as_ref().map(|x| part(x, row, q_len * kv_len));
            want.weights = among.weights.as_ref().map(|x| part(x, row, q_len * kv_len));
            assert!(bits(&got) == bits(&want), "{}: batch {batch}, head {head}", kernel.name);
        }
    });
}
