//! What the planner composes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use wgpu::naga::{
    Module,
    front::wgsl,
    valid::{Capabilities, ModuleInfo, ValidationFlags, Validator},
};
use wgpu_attention::{Attention, Choice, Dispatch, LoopLimit, Method, Options};

use crate::problems::{broadcasts, caches, extras, merges, problems, products, projections};
use crate::{lanes, matrices};

const FLASH: Choice = Choice::method(Method::Flash);

/// What some modules need: f16 packed in words, the type itself, subgroups, and matrices.
pub const CAPABILITIES: Capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32
    .union(Capabilities::SHADER_FLOAT16)
    .union(Capabilities::SUBGROUP)
    .union(Capabilities::COOPERATIVE_MATRIX);

/// In modules that only native back ends with matrix units are given.
pub const MATRICES: &str = "enable wgpu_cooperative_matrix;";

/// A module read back with naga, valid.
pub fn read(dispatch: &Dispatch) -> (Module, ModuleInfo) {
    let text = &dispatch.wgsl;
    let module = wgsl::parse_str(text);
    let module = module.unwrap_or_else(|error| panic!("{}", error.emit_to_string(text)));
    let info = Validator::new(ValidationFlags::all(), CAPABILITIES).validate(&module);
    let info = info.unwrap_or_else(|error| panic!("{}", error.emit_to_string(text)));
    (module, info)
}

/// The distinct modules of all problems, by their text. Composed once.
pub fn modules() -> &'static BTreeMap<String, Dispatch> {
    static MODULES: OnceLock<BTreeMap<String, Dispatch>> = OnceLock::new();
    MODULES.get_or_init(compose)
}

fn compose() -> BTreeMap<String, Dispatch> {
    let mut all = BTreeMap::new();
    let limits = wgpu::Limits {
        max_storage_buffer_binding_size: 1 << 30,
        max_buffer_size: 1 << 30,
        max_compute_workgroup_storage_size: 32 << 10,
        ..wgpu::Limits::default()
    };
    let descriptor = wgpu::DeviceDescriptor { required_limits: limits, ..Default::default() };
    for loop_limit in [LoopLimit::Unlimited, LoopLimit::Iterations(6000)] {
        let (device, _queue) = wgpu::Device::noop(&descriptor);
        // As GPUs, the first two; software adapters, the rest.
        let options = || Options::default().loop_limit(loop_limit);
        let attention = Attention::with(&device, options().fused_multiply_add(true));
        for (problem, choice) in problems() {
            let plan = attention.plan_with(&problem, choice);
            let plan = plan.unwrap_or_else(|error| panic!("{error}: {choice:?} {problem:?}"));
            let dispatches = plan.describe().dispatches;
            all.extend(dispatches.into_iter().map(|d| (d.wgsl.clone(), d)));
        }
        // The same types where the device has f16 itself.
        let required_features = wgpu::Features::SHADER_F16;
        let descriptor = wgpu::DeviceDescriptor { required_features, ..descriptor.clone() };
        let (device, _queue) = wgpu::Device::noop(&descriptor);
        let native = Attention::with(&device, options().fused_multiply_add(true));
        for (problem, choice) in extras() {
            let dispatches =
                native.plan_with(&problem, choice).expect("a plan").describe().dispatches;
            all.extend(dispatches.into_iter().map(|d| (d.wgsl.clone(), d)));
        }
        let lanes = Attention::with(
            &lanes::device(&descriptor, [8, 8]),
            Options::default().loop_limit(loop_limit),
        );
        let flash = extras().into_iter().filter(|extra| extra.1 == FLASH).take(6);
        for (problem, choice) in broadcasts().into_iter().chain(flash) {
            let plan = lanes.plan_with(&problem, choice);
            let plan = plan.unwrap_or_else(|error| panic!("{error}: {choice:?} {problem:?}"));
            let dispatches = plan.describe().dispatches;
            all.extend(dispatches.into_iter().map(|d| (d.wgsl.clone(), d)));
        }
        for (size, lanes) in [(8, [8, 8]), (8, [32, 32]), (16, [32, 32]), (16, [32, 64])] {
            let options = Options::default().loop_limit(loop_limit).matrices(&[size]);
            let device = matrices::device(&descriptor, lanes);
            let attention = Attention::with(&device, options);
            for (problem, choice) in products() {
                let plan = attention.plan_with(&problem, choice);
                let plan = plan.unwrap_or_else(|error| panic!("{error}: {choice:?} {problem:?}"));
                let dispatches = plan.describe().dispatches;
                all.extend(dispatches.into_iter().map(|d| (d.wgsl.clone(), d)));
            }
        }
        for projection in projections() {
            let plan = attention.plan_projection(&projection).expect("a plan");
            all.extend(plan.describe().map(|d| (d.wgsl.clone(), d)));
        }
        for merge in merges() {
            let plan = attention.plan_merge(&merge).expect("a plan");
            all.extend(plan.describe().map(|d| (d.wgsl.clone(), d)));
        }
        for (cache, append, problem) in caches() {
            let plan = attention.plan_append(&append).expect("a plan");
            all.extend(plan.describe().into_iter().map(|d| (d.wgsl.clone(), d)));
            let lanes = !problem.outputs().weights;
            let choice = if lanes { Choice::method(Method::Decode) } else { Choice::default() };
            for choice in [Choice::default(), choice] {
                let plan = attention.plan_with(&problem, choice).expect("a plan");
                all.extend(plan.describe().dispatches.into_iter().map(|d| (d.wgsl.clone(), d)));
            }
            let plan = attention.plan_unpack(cache).expect("a plan");
            let d = plan.describe();
            all.insert(d.wgsl.clone(), d);
        }
    }
    all
}
