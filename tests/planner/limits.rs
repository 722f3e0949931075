//! Every plan against every limit of its device.

use wgpu_attention::{
    Buffers, Choice, Dispatch, Error, LoopLimit, Method, Operand, Plan, Problem, Shape,
};

use crate::device::{PLAIN, Pretend, Traits, grid, words};
use crate::problems::problems;

#[test]
fn every_plan_is_within_its_device_or_names_the_limit() {
    plans_of_devices(2);
}

#[test]
#[ignore = "exhaustive"]
fn exhaustive_plans_are_within_their_device_or_name_the_limit() {
    plans_of_devices(1);
}

/// Every problem on one in so many devices, others with each loop limit.
fn plans_of_devices(step: usize) {
    let (mut plans, mut refused, mut bound, mut lifted) = (0, 0, 0, 0);
    let mut broken = Vec::new();
    let loop_limits = [LoopLimit::Unlimited, LoopLimit::Iterations(65_535)];
    for (first, loop_limit) in loop_limits.into_iter().enumerate() {
        for limits in grid().into_iter().skip(first % step).step_by(step) {
            let pretend = Pretend::new(&limits, loop_limit);
            for (name, problem, choice) in problems() {
                let pair = format!("{name} on {{{}}}, {loop_limit:?}", words(&limits));
                match pretend.attention.plan_with(&problem, choice) {
                    Ok(plan) => {
                        plans += 1;
                        broken.extend(
                            within(&plan, &limits).map_err(|why| format!("{why}: {pair}")).err(),
                        );
                        let bytes: u64 = [Operand::Q, Operand::K, Operand::V, Operand::O]
                            .map(|operand| 4 * problem.elements(operand))
                            .iter()
                            .sum();
                        if bytes + plan.scratch_bytes() < 1 << 20 {
                            bind(&pretend, &plan).unwrap_or_else(|error| panic!("{error}: {pair}"));
                            bound += 1;
                        }
                    }
                    Err(Error::Limit { what, need, got }) => {
                        refused += 1;
                        assert!(need > got, "{what} {need} {got}: {pair}");
                        let plan =
                            |pretend: &Pretend| pretend.attention.plan_with(&problem, choice);
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
    println!(
        "{} pairs: {plans} plans ({bound} bound), {refused} refused ({lifted} planned once the \
         named limits were raised)",
        plans + refused
    );
    assert!(broken.is_empty(), "{} pairs:\n{}", broken.len(), broken.join("\n"));
    assert!(plans > 200 && refused > 100 && bound > 100 && lifted > 100);
}

/// Raises named limits until there is a plan, which it must come to. False if what is named is no
/// limit of the device's.
pub fn lift<P>(
    plan: impl Fn(&Pretend) -> Result<P, Error>,
    within: impl Fn(&P, &wgpu::Limits) -> Result<(), String>,
    limits: &wgpu::Limits,
    traits: Traits,
) -> Result<bool, String> {
    let mut limits = limits.clone();
    for _ in 0..12 {
        match plan(&Pretend::with(&limits, traits)) {
            Ok(plan) => return within(&plan, &limits).map(|()| true),
            Err(Error::Limit { what, need, got }) => match raised(what, need, got, &limits)? {
                Some(more) => limits = more,
                None => return Ok(false),
            },
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("no plan after raising every limit named".into())
}

/// The device with the named limit raised to what the error says is needed; `None` if it is no
/// limit of the device's. Naming the wrong limit, or quoting another value of it, is a failure.
fn raised(
    what: &str,
    need: u64,
    got: u64,
    old: &wgpu::Limits,
) -> Result<Option<wgpu::Limits>, String> {
    let mut new = old.clone();
    let side = &mut new.max_compute_workgroups_per_dimension;
    let binding = old.max_storage_buffer_binding_size.min(old.max_buffer_size);
    let is = match what {
        "max_compute_invocations_per_workgroup" => {
            new.max_compute_workgroup_size_x = old.max_compute_workgroup_size_x.max(need as u32);
            replace(&mut new.max_compute_invocations_per_workgroup, need)
        }
        "max_compute_workgroup_size_x" => replace(&mut new.max_compute_workgroup_size_x, need),
        "max_compute_workgroup_storage_size" => {
            replace(&mut new.max_compute_workgroup_storage_size, need)
        }
        "max_storage_buffers_per_shader_stage" => {
            replace(&mut new.max_storage_buffers_per_shader_stage, need)
        }
        "max_uniform_buffers_per_shader_stage" => {
            replace(&mut new.max_uniform_buffers_per_shader_stage, need)
        }
        "max_bindings_per_bind_group" => replace(&mut new.max_bindings_per_bind_group, need),
        "max_uniform_buffer_binding_size" => {
            std::mem::replace(&mut new.max_uniform_buffer_binding_size, need)
        }
        // One buffer, bound in parts.
        "max_buffer_size" | "scratch" | "projected" => {
            std::mem::replace(&mut new.max_buffer_size, need)
        }
        "workgroups" => {
            u64::from(std::mem::replace(side, (need as f64).cbrt().ceil() as u32 + 1)).pow(3)
        }
        "max_texture_dimension_2d" => replace(&mut new.max_texture_dimension_2d, need),
        "max_storage_textures_per_shader_stage" => {
            replace(&mut new.max_storage_textures_per_shader_stage, need)
        }
        "value_dim of the fused kernel"
        | "loop iterations of one invocation"
        | "f16 for Q, K and V, as matrices multiply"
        | "subgroups of 8 to 64 lanes for matrices of 8 rows, of 16 to 64 for 16"
        | "head_dim"
        | "value_dim" => return Ok(None),
        "q"
        | "k"
        | "v"
        | "o"
        | "bias"
        | "mask"
        | "tables"
        | "lse"
        | "scores"
        | "weights"
        | "arena"
        | "x"
        | "context"
        | "w"
        | "w_q"
        | "w_k"
        | "w_v"
        | "w_o"
        | "b"
        | "b_q"
        | "b_k"
        | "b_v"
        | "b_o"
        | "residual"
        | "y"
        | "cache"
        | "tables of the cache"
        | "page copies of the cache"
        | "stored scores"
        | "partial results of one tile" => {
            new.max_storage_buffer_binding_size = need.max(old.max_storage_buffer_binding_size);
            new.max_buffer_size = need.max(old.max_buffer_size);
            binding
        }
        _ => return Err(format!("{what} is no limit")),
    };
    if got == is { Ok(Some(new)) } else { Err(format!("{what} is {is}, not {got}")) }
}

fn replace(limit: &mut u32, need: u64) -> u64 {
    std::mem::replace(limit, need as u32).into()
}

/// Everything a plan says of itself, against the limits.
pub fn within(plan: &Plan, limits: &wgpu::Limits) -> Result<(), String> {
    let binding = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
    let mut checks = vec![("scratch", plan.scratch_bytes(), limits.max_buffer_size)];
    let (inputs, rest) = ([Operand::Q, Operand::K, Operand::V], [Operand::O, Operand::Arena]);
    let extras = [Operand::Bias, Operand::Mask, Operand::Tables, Operand::Lse];
    for operand in inputs.into_iter().chain(rest).chain(extras) {
        checks.push(("operand", plan.problem().bytes(operand), binding));
    }
    broken(checks)?;
    plan.describe().dispatches.iter().try_for_each(|dispatch| dispatch_within(dispatch, limits))
}

fn broken(checks: Vec<(&str, u64, u64)>) -> Result<(), String> {
    match checks.into_iter().find(|(_, need, got)| need > got) {
        Some(broken) => Err(format!("{broken:?}")),
        None => Ok(()),
    }
}

/// Bindings that are no storage buffers.
const UNIFORMS: [u32; 3] = [0, 1, 21];
const TEXTURES: [u32; 2] = [25, 27];

/// Everything a dispatch says of itself, against the limits.
pub fn dispatch_within(dispatch: &Dispatch, limits: &wgpu::Limits) -> Result<(), String> {
    let count = |of: &[u32]| dispatch.bindings.iter().filter(|at| of.contains(at)).count() as u64;
    let (uniforms, textures) = (count(&UNIFORMS), count(&TEXTURES));
    let storage = dispatch.bindings.len() as u64 - uniforms - textures;
    let invocations = u64::from(dispatch.invocations);
    let last = dispatch.bindings.iter().max().map_or(0, |&binding| u64::from(binding) + 1);
    let mut checks = vec![
        ("invocations", invocations, limits.max_compute_invocations_per_workgroup.into()),
        ("size x", invocations, limits.max_compute_workgroup_size_x.into()),
        (
            "workgroup memory",
            dispatch.workgroup_bytes.into(),
            limits.max_compute_workgroup_storage_size.into(),
        ),
        ("storage buffers", storage, limits.max_storage_buffers_per_shader_stage.into()),
        ("textures", textures, limits.max_storage_textures_per_shader_stage.into()),
        ("uniforms", uniforms, limits.max_uniform_buffers_per_shader_stage.into()),
        ("bindings", last, limits.max_bindings_per_bind_group.into()),
    ];
    for side in dispatch.grid {
        checks.push(("grid", side.into(), limits.max_compute_workgroups_per_dimension.into()));
        if side == 0 {
            return Err("an empty grid".into());
        }
    }
    broken(checks)
}

/// Buffers of just the sizes a plan needs are bound: wgpu's own checks of every binding.
fn bind(pretend: &Pretend, plan: &Plan) -> Result<(), Error> {
    let problem = plan.problem();
    let is_arena = problem.elements(Operand::Arena) > 0;
    let outputs = problem.outputs();
    let mut operands = match is_arena {
        true => vec![(Operand::Arena, 4 * problem.elements(Operand::Arena))],
        false => {
            let optional = [
                (Operand::Bias, problem.elements(Operand::Bias) > 0),
                (Operand::Lse, outputs.lse),
                (Operand::Scores, outputs.scores),
                (Operand::Weights, outputs.weights),
            ];
            let mut all = vec![Operand::Q, Operand::K, Operand::V, Operand::O];
            all.extend(optional.into_iter().filter(|o| o.1).map(|o| o.0));
            all.into_iter().map(|operand| (operand, 4 * problem.elements(operand))).collect()
        }
    };
    operands.push((Operand::Scratch, plan.scratch_bytes()));
    let buffers: Vec<_> =
        operands.iter().map(|&(operand, size)| (operand, pretend.buffer(size))).collect();
    plan.bind(buffers.iter().fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer)))
        .map(|_| ())
}

/// WebGPU's default limits must be enough for all of these.
#[test]
fn default_limits_suffice() {
    for loop_limit in [LoopLimit::Unlimited, LoopLimit::Iterations(65_535)] {
        let pretend = Pretend::new(&wgpu::Limits::default(), loop_limit);
        let mut planned = 0;
        for (name, problem, choice) in problems().into_iter().filter(|p| p.0 != "too large") {
            match pretend.attention.plan_with(&problem, choice) {
                Ok(_) => planned += 1,
                Err(error) => panic!("{name}, {loop_limit:?}: {error}"),
            }
        }
        println!("{planned} problems planned, {loop_limit:?}");
    }
}

/// The largest binding wgpu ever allows holds 2^30 scores; indices never come near 2^32.
#[test]
fn stored_scores_past_the_largest_binding_are_refused() {
    let most = u64::from(u32::MAX - 3);
    let limits = wgpu::Limits {
        max_storage_buffer_binding_size: most,
        max_buffer_size: most,
        ..wgpu::Limits::default()
    };
    let pretend = Pretend::new(&limits, LoopLimit::Unlimited);
    for (q_len, kv_len) in [(1 << 15, (1 << 15) - 1), (1 << 15, 1 << 15), (1 << 17, 1 << 17)] {
        let problem = Problem::new(Shape { q_len, ..Shape::self_attention(1, 1, kv_len, 4) });
        let need = 4 * u64::from(q_len) * u64::from(kv_len);
        match pretend.attention.plan_with(&problem, Choice::method(Method::Staged)) {
            Ok(plan) => {
                assert_eq!(plan.scratch_bytes(), need);
                within(&plan, &limits).expect("a plan within the limits");
            }
            Err(error) => {
                assert_eq!(error, Error::Limit { what: "stored scores", need, got: most });
                assert!(need > most);
            }
        }
        assert!(pretend.attention.plan(&problem).is_ok(), "flash stores no scores");
    }
}
