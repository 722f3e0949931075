//! Every configuration that the tables of the library choose for head dims 64 and 128, composed by
//! the library itself on pretended devices.

use wgpu_attention::{Attention, CacheShape, Choice, Element, Group, Method, Problem, Shape};

/// What is compiled.
pub struct Configuration {
    pub name: String,
    pub wgsl: String,
    pub tile: String,
    pub invocations: u32,
    /// Waves that a SIMD must be able to hold at a time, so that some work while others wait.
    pub fewest_waves: u64,
}

/// Limits that differ between GPUs: workgroup memory in KiB, invocations of a workgroup.
const DEVICES: [(u32, u32); 4] = [(16, 256), (32, 256), (32, 1024), (64, 1024)];
const DIMS: [u32; 2] = [64, 128];

pub fn all() -> Result<Vec<Configuration>, String> {
    let mut all: Vec<Configuration> = Vec::new();
    for (kib, invocations) in DEVICES {
        for (half, element) in [(false, Element::F32), (true, Element::F16)] {
            let attention = Attention::new(&device(kib, invocations, half));
            for dim in DIMS {
                for (what, problem) in problems(dim, element) {
                    let plan = attention.plan_with(&problem, Choice::method(Method::Flash));
                    let plan =
                        plan.map_err(|why| format!("{what}, d = {dim}, {kib} KiB: {why}"))?;
                    let about = plan.describe();
                    let found = about.dispatches.iter().find(|d| d.kernel == "flash");
                    let dispatch = found.ok_or("a plan of flash without flash")?;
                    if all.iter().any(|one| one.wgsl == dispatch.wgsl) {
                        continue;
                    }
                    all.push(Configuration {
                        name: format!("{element:?} d={dim} {what}, {kib} KiB, {invocations}"),
                        wgsl: dispatch.wgsl.clone(),
                        tile: format!("{} x {}", about.tile.queries, about.tile.keys),
                        invocations: dispatch.invocations,
                        fewest_waves: if dispatch.invocations > 64 { 4 } else { 3 },
                    });
                }
            }
        }
    }
    Ok(all)
}

fn device(kib: u32, invocations: u32, half: bool) -> wgpu::Device {
    let limits = wgpu::Limits {
        max_compute_workgroup_storage_size: kib << 10,
        max_compute_invocations_per_workgroup: invocations,
        max_compute_workgroup_size_x: invocations,
        ..wgpu::Limits::default()
    };
    let features = if half { wgpu::Features::SHADER_F16 } else { wgpu::Features::empty() };
    let descriptor = wgpu::DeviceDescriptor {
        required_limits: limits,
        required_features: features,
        ..Default::default()
    };
    wgpu::Device::noop(&descriptor).0
}

/// What a caller computes with one head dim: plain, and with what makes the kernel larger.
fn problems(dim: u32, element: Element) -> Vec<(&'static str, Problem)> {
    let prefill = Problem::new(Shape::self_attention(1, 32, 2048, dim).kv_heads(8))
        .element(Group::Queries, element)
        .element(Group::Keys, element);
    let decode = |rows: u32| {
        let cache = CacheShape::new(1, 8, 4096, dim).element(element);
        cache.problem(32, rows).element(Group::Queries, element)
    };
    vec![
        ("prefill", prefill.clone()),
        ("prefill with LSE", prefill.clone().lse()),
        ("prefill with bias", prefill.clone().bias_shape(&[2048, 2048])),
        ("prefill with mask", prefill.mask_shape(&[2048, 2048])),
        ("decode, 1 token", decode(1)),
        ("decode, 4 tokens", decode(4)),
    ]
}
