//! Every configuration that the tables of the library choose for head dims 64 and 128, composed by
//! the library itself on pretended devices.

use wgpu_attention::{
    Attention, CacheShape, Choice, Element, Group, Method, Options, Problem, Shape,
};

/// What is compiled.
pub struct Configuration {
    pub name: String,
    pub wgsl: String,
    pub tile: String,
    pub invocations: u32,
    /// Waves that a SIMD must be able to hold at a time, so that some work while others wait: fewer
    /// where matrices take the registers.
    pub fewest_waves: u64,
}

/// Limits that differ between GPUs: workgroup memory in KiB, invocations of a workgroup.
const DEVICES: [(u32, u32); 4] = [(16, 256), (32, 256), (32, 1024), (64, 1024)];
const DIMS: [u32; 2] = [64, 128];

/// Of `flash`, and for cards with matrix units of `flash_matrix`.
pub fn all(matrix_rows: Option<u32>) -> Result<Vec<Configuration>, String> {
    let mut all: Vec<Configuration> = Vec::new();
    let types = [Element::F32, Element::F16];
    for (kib, invocations) in DEVICES {
        for element in types {
            let attention = attention(kib, invocations, element, None);
            add(
                &mut all,
                &attention,
                Method::Flash,
                element,
                &format!("{kib} KiB, {invocations}"),
            )?;
        }
        if let Some(rows) = matrix_rows {
            let attention = attention(kib, invocations, Element::F16, Some(rows));
            let device = format!("matrices of {rows}, {kib} KiB");
            add(&mut all, &attention, Method::Matrix, Element::F16, &device)?;
        }
    }
    Ok(all)
}

fn add(
    all: &mut Vec<Configuration>,
    attention: &Attention,
    method: Method,
    element: Element,
    device: &str,
) -> Result<(), String> {
    for dim in DIMS {
        for (what, problem) in problems(dim, element) {
            // Few rows are not for matrices.
            if method == Method::Matrix && what.starts_with("decode") {
                continue;
            }
            let name = format!("{element:?} d={dim} {what}, {device}");
            let plan = attention.plan_with(&problem, Choice::method(method));
            let about = plan.map_err(|why| format!("{name}: {why}"))?.describe();
            let dispatch = about.dispatches.first().ok_or("a plan without a dispatch")?;
            if !all.iter().any(|one| one.wgsl == dispatch.wgsl) {
                all.push(Configuration {
                    name,
                    wgsl: dispatch.wgsl.clone(),
                    tile: format!("{} x {}", about.tile.queries, about.tile.keys),
                    invocations: dispatch.invocations,
                    fewest_waves: match method {
                        Method::Matrix => 2,
                        _ => 4,
                    },
                });
            }
        }
    }
    Ok(())
}

/// On a device of AMD's: subgroups of 32 or 64 lanes.
fn attention(kib: u32, invocations: u32, element: Element, matrix_rows: Option<u32>) -> Attention {
    let mut options = wgpu::NoopBackendOptions::enabled();
    (options.subgroup_min_size, options.subgroup_max_size) = (Some(32), Some(64));
    let mut instance = wgpu::InstanceDescriptor::new_without_display_handle();
    instance.backends = wgpu::Backends::NOOP;
    instance.backend_options.noop = options;
    let instance = wgpu::Instance::new(instance);
    let adapter = pollster::block_on(instance.request_adapter(&Default::default()));
    let half =
        if element == Element::F16 { wgpu::Features::SHADER_F16 } else { Default::default() };
    let matrices = wgpu::Features::SUBGROUP | wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;
    let descriptor = wgpu::DeviceDescriptor {
        required_limits: wgpu::Limits {
            max_compute_workgroup_storage_size: kib << 10,
            max_compute_invocations_per_workgroup: invocations,
            max_compute_workgroup_size_x: invocations,
            ..wgpu::Limits::default()
        },
        required_features: matrix_rows.map_or(half, |_| half | matrices),
        // SAFETY: nothing runs on this device.
        experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
        ..Default::default()
    };
    let device = adapter.expect("the noop adapter").request_device(&descriptor);
    let (device, _queue) = pollster::block_on(device).expect("a noop device");
    Attention::with(
        &device,
        Options::default().matrices(matrix_rows.as_slice()).fused_multiply_add(true),
    )
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
