//! Masks, lengths, packed sequences, ALiBi, sinks and 16-bit types, all at once.

use wgpu_attention::{
    Align, Buffers, Choice, Element, Error, Group, LoopLimit, Method, MultiHead, Operand, Plan,
    Problem, Shape, Tile,
};

use crate::device::{PLAIN, Pretend, Traits, grid, words};
use crate::limits::{lift, within};

const SHAPE: Shape = Shape { q_len: 33, ..Shape::self_attention(3, 8, 300, 64) }.kv_heads(2);
const LOOP_LIMITS: [LoopLimit; 2] = [LoopLimit::Unlimited, LoopLimit::Iterations(65_535)];

/// Everything but what tells sequences apart.
fn rest(shape: Shape) -> Problem {
    let full = [shape.batch, shape.q_heads, shape.q_len, shape.kv_len];
    let problem = Problem::new(shape).causal().align(Align::BottomRight).softcap(9.0);
    problem.bias_shape(&full).mask_shape(&full).alibi().sinks().lse()
}

/// (name, problem): each with every operand that an attention can read.
fn everything() -> Vec<(&'static str, Problem)> {
    let lengths = rest(SHAPE).q_lens().kv_lens();
    let packed = rest(Shape { batch: 1, q_len: 90, ..SHAPE }).packed(5);
    let of = |problem: &Problem, queries, keys| {
        problem.clone().element(Group::Queries, queries).element(Group::Keys, keys)
    };
    let odd = rest(Shape { head_dim: 7, value_dim: 6, ..SHAPE }).q_lens().kv_lens();
    vec![
        ("lengths, f16", of(&lengths, Element::F16, Element::F16)),
        ("lengths, f16 under f32", of(&lengths, Element::F32, Element::F16)),
        ("packed, bf16", of(&packed, Element::Bf16, Element::Bf16)),
        ("odd, f16", of(&odd, Element::F16, Element::F16)),
        ("packed, f32", packed),
    ]
}

fn choices() -> [Choice; 3] {
    let tile = Tile { queries: 32, keys: 32 };
    [Choice::default(), Choice::tile(tile), Choice::method(Method::Staged)]
}

/// Storage buffers of each kernel.
fn storage(plan: &Plan) -> Vec<(&'static str, usize)> {
    let count = |bindings: &[u32]| bindings.iter().filter(|&&binding| binding > 1).count();
    plan.describe().dispatches.iter().map(|d| (d.kernel, count(&d.bindings))).collect()
}

/// Buffers of just the sizes a plan needs: wgpu's own checks of every binding.
fn bind(pretend: &Pretend, plan: &Plan) -> Result<(), Error> {
    let problem = plan.problem();
    let operands = [
        Operand::Q,
        Operand::K,
        Operand::V,
        Operand::O,
        Operand::Bias,
        Operand::Mask,
        Operand::Tables,
        Operand::Lse,
        Operand::Scores,
        Operand::Weights,
    ];
    let sizes = operands.map(|operand| (operand, problem.bytes(operand)));
    let sizes = sizes.into_iter().filter(|size| size.1 > 0);
    let buffers: Vec<_> = sizes
        .chain([(Operand::Scratch, plan.scratch_bytes())])
        .map(|(operand, bytes)| (operand, pretend.buffer(bytes)))
        .collect();
    plan.bind(buffers.iter().fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer)))
        .map(|_| ())
}

/// WebGPU's default limits hold everything at once, with and without splits; one buffer less does
/// not, and the error says so.
#[test]
fn everything_at_once_within_default_limits() {
    let mut most = 0;
    for loop_limit in LOOP_LIMITS {
        let limits = wgpu::Limits::default();
        let pretend = Pretend::new(&limits, loop_limit);
        for (name, problem) in everything() {
            let stored = problem.clone().scores().weights();
            let staged = Choice::method(Method::Staged);
            let fused = choices().map(|choice| (problem.clone(), choice));
            for (problem, choice) in fused.into_iter().chain([(stored, staged)]) {
                let name = format!("{name}, {choice:?}, {loop_limit:?}");
                let plan = pretend.attention.plan_with(&problem, choice);
                let plan = plan.unwrap_or_else(|error| panic!("{name}: {error}"));
                within(&plan, &limits).unwrap_or_else(|why| panic!("{name}: {why}"));
                bind(&pretend, &plan).unwrap_or_else(|error| panic!("{name}: {error}"));
                let needs = storage(&plan).into_iter().map(|kernel| kernel.1).max();
                most = most.max(needs.expect("a kernel"));
            }
        }
    }
    assert_eq!(most, 8, "the fused kernel binds them all");
    let what = "max_storage_buffers_per_shader_stage";
    let limits = wgpu::Limits { max_storage_buffers_per_shader_stage: 7, ..Default::default() };
    let pretend = Pretend::new(&limits, LoopLimit::Unlimited);
    for (name, problem) in everything() {
        let error = pretend.attention.plan(&problem).map(|_| ());
        assert_eq!(error, Err(Error::Limit { what, need: 8, got: 7 }), "{name}");
        let staged = pretend.attention.plan_with(&problem, Choice::method(Method::Staged));
        assert!(storage(&staged.expect(name)).iter().all(|kernel| kernel.1 <= 6), "{name}");
    }
}

/// On every device a plan within its limits, or a refusal that goes away once what it names is
/// raised.
#[test]
fn every_device_plans_or_names_the_limit() {
    let (mut plans, mut refused, mut lifted) = (0, 0, 0);
    let mut broken = Vec::new();
    for loop_limit in LOOP_LIMITS {
        for limits in grid().into_iter().step_by(3) {
            let pretend = Pretend::new(&limits, loop_limit);
            for (name, problem) in everything() {
                for choice in [Choice::default(), Choice::method(Method::Staged)] {
                    let pair = format!("{name}, {choice:?} on {{{}}}", words(&limits));
                    let plan = |pretend: &Pretend| pretend.attention.plan_with(&problem, choice);
                    match plan(&pretend) {
                        Ok(plan) => {
                            plans += 1;
                            broken.extend(within(&plan, &limits).err().map(|e| pair + ": " + &e));
                        }
                        Err(Error::Limit { what, need, got }) => {
                            refused += 1;
                            assert!(need > got, "{what} {need} {got}: {pair}");
                            match lift(plan, within, &limits, Traits { loop_limit, ..PLAIN }) {
                                Ok(to) => lifted += u32::from(to),
                                Err(why) => broken.push(format!("{why}: {pair}")),
                            }
                        }
                        Err(error) => panic!("{error}: {pair}"),
                    }
                }
            }
        }
    }
    println!("{plans} plans, {refused} refused, {lifted} planned once the limits were raised");
    assert!(broken.is_empty(), "{} pairs:\n{}", broken.len(), broken.join("\n"));
    assert!(plans > 100 && lifted > 50);
}

/// A mask or tables past the largest binding, by their names.
#[test]
fn masks_and_tables_past_the_largest_binding() {
    let limits = wgpu::Limits {
        max_storage_buffer_binding_size: 64 << 10,
        max_buffer_size: 64 << 10,
        ..wgpu::Limits::default()
    };
    let pretend = Pretend::new(&limits, LoopLimit::Unlimited);
    let small = Shape::self_attention(1, 1, 20, 4);
    let wide = Shape { q_len: 1000, ..small.kv_len(1000) };
    let limit = |what, need| Some(Error::Limit { what, need, got: 64 << 10 });
    let of = |problem: &Problem| pretend.attention.plan(problem).err();
    // 32 words a row.
    let mask = Problem::new(wide).mask_shape(&[1000, 1000]);
    assert_eq!(of(&mask), limit("mask", 4 * 32 * 1000));
    let packed = Problem::new(small).packed(20_000);
    assert_eq!(of(&packed), limit("tables", 4 * 2 * 20_001));
    let batches = Problem::new(Shape { batch: 20_000, q_len: 0, ..small }).kv_lens();
    let batches = batches.layout(Operand::K, Default::default());
    assert_eq!(of(&batches.layout(Operand::V, Default::default())), limit("tables", 80_000));
    // Past what can be indexed it is the problem's own error.
    let most = u32::MAX;
    let empty = Shape { batch: most, q_len: 0, kv_len: 0, ..small };
    let need = "at most 2^32 elements from the first to the last one used";
    let both = Problem::new(empty).q_lens().kv_lens();
    let want = Error::Size { what: "tables", need, got: 2 * u128::from(most) };
    assert_eq!(both.validate(), Err(want.clone()));
    assert_eq!(of(&both), Some(want));
}

/// The layer binds no more than the attention in it.
#[test]
fn layers_with_everything_within_default_limits() {
    let shape = Shape { q_len: 40, kv_len: 40, ..SHAPE };
    for loop_limit in LOOP_LIMITS {
        let limits = wgpu::Limits::default();
        let pretend = Pretend::new(&limits, loop_limit);
        for problem in [rest(shape).q_lens().kv_lens(), rest(shape).scores().kv_lens()] {
            let layer = MultiHead::new(64, problem).biases().residual();
            let plan = pretend.attention.plan_multi_head(&layer).expect("a plan");
            within(plan.attention(), &limits).expect("within the limits");
            assert!(storage(plan.attention()).iter().all(|kernel| kernel.1 <= 8));
            assert!(layer.elements(Operand::Mask) > 0 && layer.elements(Operand::Tables) > 0);
        }
    }
}
