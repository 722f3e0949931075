//! The kernel of matrix units, where the adapter has them: on the case table in f16, against the rule
//! for 16-bit types, and against what hidden keys may hold.

use std::sync::OnceLock;

use wgpu_attention::half::f16;
use wgpu_attention::{
    Align, Choice, Element, Error, Gpu, Inputs, LoopLimit, Method, Problem, Shape, Tile,
};

use crate::checks::{Checked, FLASH, LSE, Run};
use crate::kernels::MATRIX;
use crate::precision::rule;
use crate::support::{PerLane, normal};
use wgpu_attention_support::cases::{self, Case};

const TILES: [Tile; 2] = [Tile { queries: 64, keys: 32 }, Tile { queries: 32, keys: 16 }];

fn adapter() -> wgpu::Adapter {
    let instance = wgpu::InstanceDescriptor::new_without_display_handle().with_env();
    let instance = wgpu::Instance::new(instance);
    let adapter = pollster::block_on(instance.request_adapter(&Default::default()));
    adapter.expect("an adapter")
}

/// The adapter of all tests with its matrix units; `None`, and said, if it has none that fit.
pub fn gpu() -> Option<&'static Gpu> {
    static GPU: PerLane<Option<Gpu>> = PerLane::new();
    GPU.get_or_init(|| {
        let adapter = adapter();
        let matrices = adapter.cooperative_matrix_properties();
        if matrices.is_empty() {
            return None;
        }
        // SAFETY: whatever the driver does wrong with them is what these tests are for.
        let token = unsafe { wgpu::ExperimentalFeatures::enabled() };
        let gpu = pollster::block_on(Gpu::from_adapter(&adapter, token)).expect("a device");
        let plan = gpu
            .planner()
            .plan_with(&halves(Problem::new(Shape::self_attention(1, 1, 64, 64))), MATRIX);
        match plan {
            Ok(_) => Some(gpu),
            Err(Error::Limit { what, .. }) => {
                println!("SKIPPED: {} lacks {what}; it has {matrices:?}", adapter.get_info().name);
                None
            }
            Err(error) => panic!("{error}"),
        }
    })
    .as_ref()
}

/// What the tests here need, and KERNELS' walks do without.
fn needed() -> &'static Gpu {
    gpu().expect("an adapter with matrix units")
}

fn halves(problem: Problem) -> Problem {
    let [queries, keys] = [wgpu_attention::Group::Queries, wgpu_attention::Group::Keys];
    problem.element(queries, Element::F16).element(keys, Element::F16)
}

/// The whole table stored as f16, as far as it can be.
fn table() -> &'static [Checked] {
    static TABLE: OnceLock<Vec<Checked>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let most = |problem: &Problem| problem.shape().head_dim.max(problem.shape().value_dim);
        let all = cases::all().into_iter().filter(|case| most(&case.problem) <= 128);
        let f16s = all.map(|case| Case { types: [Element::F16; 2], ..case });
        f16s.map(|case| {
            let mut checked = Checked::new(case);
            // P is rounded to f16: each weight by 2^-11 of itself, or of the smallest normal number.
            let finite = checked.data.v.iter().filter(|v| v.is_finite());
            let most = finite.fold(0.0, |most: f32, v| most.max(v.abs()));
            checked.tolerance[0] += most * 2f32.powi(-11);
            checked
        })
        .collect()
    })
}

#[test]
#[ignore = "needs matrix units: README, How it is tested"]
fn every_case() {
    let gpu = needed();
    // A 16-bit O in odd rows cannot be written by itself.
    let plans = |checked: &&Checked| {
        let problem =
            checked.case.problem.clone().element(wgpu_attention::Group::Queries, Element::F16);
        !matches!(gpu.planner().plan_with(&halves(problem), FLASH), Err(Error::Stride { .. }))
    };
    let cases: Vec<_> = table().iter().filter(plans).collect();
    for tile in TILES {
        let name = &format!("flash_matrix, {} x {}", tile.queries, tile.keys);
        let run = Run { name, gpu, choice: MATRIX.with_tile(tile), wants: LSE };
        let [ran, skipped] = run.check(cases.iter().copied());
        assert!(ran > 300 && skipped == 0, "{ran} ran, {skipped} skipped");
    }
}

#[test]
#[ignore = "needs matrix units: README, How it is tested"]
fn split_keys() {
    let gpu = needed();
    let split = gpu.planner().clone().with_loop_limit(LoopLimit::Iterations(1500));
    let split = gpu.clone().with_attention(split);
    let many = table().iter().filter(|checked| {
        let plan = split.planner().plan_with(&halves(checked.case.problem.clone()), MATRIX);
        plan.is_ok_and(|plan| plan.describe().split_keys.is_some())
    });
    let run = Run { name: "flash_matrix, split", gpu: &split, choice: MATRIX, wants: LSE };
    let [ran, _] = run.check(many);
    assert!(ran > 3, "{ran} ran");
}

#[test]
#[ignore = "needs matrix units: README, How it is tested"]
fn no_worse_than_an_unfused_computation() {
    let gpu = needed();
    for dim in [64, 128] {
        rule::<f16, f16>(gpu, &TILES.map(|tile| MATRIX.with_tile(tile)), dim);
    }
}

/// Rows that do not see a key are the same bits whatever it holds, and rows that do are not finite
/// where it is not.
#[test]
#[ignore = "needs matrix units: README, How it is tested"]
fn hidden_keys_do_not_leak() {
    let gpu = needed();
    let (tokens, dim) = (100usize, 64);
    let problem = Problem::new(Shape::self_attention(1, 1, tokens as u32, dim as u32)).causal();
    let problem = problem.align(Align::TopLeft).lse();
    let half =
        |seed| -> Vec<f16> { normal(tokens * dim, seed).into_iter().map(f16::from_f32).collect() };
    let (q, k, v) = (half(1), half(2), half(3));
    let run = |k: &[f16], v: &[f16]| {
        gpu.attention_with(&problem, Inputs::new(&q, k, v), MATRIX).expect("a good call")
    };
    let clean = run(&k, &v);
    for bad in [f16::NAN, f16::INFINITY, f16::NEG_INFINITY] {
        for (at, in_k) in [(40, true), (40, false), (99, false)] {
            let (mut k, mut v) = (k.clone(), v.clone());
            (if in_k { &mut k } else { &mut v })[at * dim + 3] = bad;
            let got = run(&k, &v);
            assert_eq!(got.o[..at * dim], clean.o[..at * dim], "{bad} at {at}");
            let seen = got.o[at * dim..].chunks(dim);
            if !in_k {
                assert!(seen.into_iter().all(|row| !row[3].is_finite()), "{bad} at {at}");
            }
        }
    }
}

/// Logits that grow from tile to tile: O is rescaled again and again, and by steps that are not.
#[test]
#[ignore = "needs matrix units: README, How it is tested"]
fn maxima_that_grow() {
    let gpu = needed();
    let (tokens, dim) = (256usize, 32);
    for step in [0.01f32, 0.2, 3.0] {
        let problem =
            Problem::new(Shape::self_attention(1, 1, tokens as u32, dim as u32)).scale(1.0);
        let q = vec![f16::ONE; tokens * dim];
        let k: Vec<f16> = (0..tokens * dim)
            .map(|at| f16::from_f32(step * (at / dim) as f32 / dim as f32))
            .collect();
        let v: Vec<f16> = normal(tokens * dim, 5).into_iter().map(f16::from_f32).collect();
        let inputs = Inputs::new(&q, &k, &v);
        let want = wgpu_attention::cpu::attention(&problem.clone().lse(), inputs).expect("cpu");
        let got = gpu.attention_with(&problem.clone().lse(), inputs, MATRIX).expect("a good call");
        let far = got.o.iter().zip(&want.o).map(|(a, b)| (a.to_f32() - b.to_f32()).abs());
        let far = far.fold(0.0, f32::max);
        println!("step {step}: {far:.1e}");
        assert!(far < 1e-3, "step {step}: {far}");
        let (got, want) = (got.lse.expect("wanted"), want.lse.expect("wanted"));
        let far = got.iter().zip(&want).map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
        assert!(far.fold(0.0, f32::max) < 1e-5, "step {step}");
    }
}

/// The planner takes matrices where there is work for them, and says what is missing where not.
#[test]
#[ignore = "needs matrix units: README, How it is tested"]
fn chosen_where_they_fit() {
    let gpu = needed();
    let plan = |problem: Problem, choice| {
        gpu.planner().plan_with(&problem, choice).map(|plan| plan.method())
    };
    let tokens = |tokens, dim| Problem::new(Shape::self_attention(1, 2, tokens, dim));
    assert!(matches!(plan(tokens(100, 64), MATRIX), Err(Error::Limit { .. })), "f32");
    assert!(
        matches!(plan(halves(tokens(100, 132)), MATRIX), Err(Error::Limit { .. })),
        "long rows"
    );
    assert_eq!(plan(halves(tokens(100, 128)), MATRIX), Ok(Method::Matrix));
    let software = gpu.device().adapter_info().name.starts_with("llvmpipe");
    let chosen = plan(halves(tokens(100, 64)), Choice::default());
    assert_eq!(chosen == Ok(Method::Matrix), !software, "{chosen:?}");
}
