//! Pretended devices of many sizes.

use std::sync::{Arc, Mutex};

use wgpu_attention::{Attention, LoopLimit, Options};

/// What a pretended device is, beside its limits.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    pub features: wgpu::Features,
    /// The fewest and the most lanes of a subgroup.
    pub lanes: [u32; 2],
    /// Rows of the matrices that it multiplies.
    pub matrices: &'static [u32],
    pub loop_limit: LoopLimit,
}

const MATRICES: wgpu::Features = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;

/// No features, and subgroups of every size that there is.
pub const PLAIN: Traits = Traits {
    features: wgpu::Features::empty(),
    lanes: [4, 128],
    matrices: &[],
    loop_limit: LoopLimit::Unlimited,
};

/// A pretended device, and what wgpu said of it that nobody caught.
pub struct Pretend {
    pub attention: Attention,
    pub device: wgpu::Device,
    instance: wgpu::Instance,
    uncaptured: Arc<Mutex<Vec<String>>>,
}

impl Pretend {
    pub fn new(limits: &wgpu::Limits, loop_limit: LoopLimit) -> Pretend {
        Pretend::with(limits, Traits { loop_limit, ..PLAIN })
    }

    pub fn with(limits: &wgpu::Limits, traits: Traits) -> Pretend {
        let Traits { features, lanes: [least, most], matrices, loop_limit } = traits;
        let noop = wgpu::NoopBackendOptions {
            limits: Some(limits.clone()),
            subgroup_min_size: Some(least),
            subgroup_max_size: Some(most),
            ..wgpu::NoopBackendOptions::enabled()
        };
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::NOOP,
            backend_options: wgpu::BackendOptions { noop, ..Default::default() },
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapter = pollster::block_on(instance.request_adapter(&Default::default()));
        let experimental_features = match features.intersects(MATRICES) {
            // SAFETY: nothing runs on this device.
            true => unsafe { wgpu::ExperimentalFeatures::enabled() },
            false => wgpu::ExperimentalFeatures::disabled(),
        };
        let descriptor = wgpu::DeviceDescriptor {
            required_limits: limits.clone(),
            required_features: features,
            experimental_features,
            ..Default::default()
        };
        let (device, _) =
            pollster::block_on(adapter.expect("an adapter").request_device(&descriptor))
                .expect("a device");
        let uncaptured = Arc::<Mutex<Vec<String>>>::default();
        let seen = uncaptured.clone();
        device.on_uncaptured_error(Arc::new(move |error| {
            seen.lock().expect("no panic").push(error.to_string());
        }));
        let options = Options::default().loop_limit(loop_limit).matrices(matrices);
        let attention = Attention::with(&device, options);
        Pretend { attention, device, instance, uncaptured }
    }

    /// A buffer that kernels may use.
    pub fn buffer(&self, size: u64) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        })
    }

    /// Compute pipelines that exist now.
    pub fn pipelines(&self) -> usize {
        let report = self.instance.generate_report().expect("a report");
        report.hub.compute_pipelines.num_allocated
    }
}

impl Drop for Pretend {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(*self.uncaptured.lock().expect("no panic"), Vec::<String>::new());
        }
    }
}

/// Devices: workgroups of every size, then bindings and grids of every size.
pub fn grid() -> Vec<wgpu::Limits> {
    let base = wgpu::Limits::default();
    let mut all = Vec::new();
    for kib in [4, 8, 16, 32, 48] {
        for invocations in [32, 64, 128, 256, 1024] {
            all.push(wgpu::Limits {
                max_compute_workgroup_storage_size: kib << 10,
                max_compute_invocations_per_workgroup: invocations,
                max_compute_workgroup_size_x: invocations,
                ..base.clone()
            });
        }
    }
    for kib in [64, 1 << 10, 16 << 10, 128 << 10] {
        for buffers in 4..=8 {
            for side in [64, 65_535] {
                all.push(wgpu::Limits {
                    max_storage_buffer_binding_size: kib << 10,
                    max_buffer_size: kib << 10,
                    max_storage_buffers_per_shader_stage: buffers,
                    max_compute_workgroups_per_dimension: side,
                    ..base.clone()
                });
            }
        }
    }
    // One thing less than usual each.
    all.extend([
        wgpu::Limits { max_compute_workgroup_size_x: 64, ..base.clone() },
        wgpu::Limits { max_compute_workgroup_size_x: 32, ..base.clone() },
        wgpu::Limits { max_compute_invocations_per_workgroup: 1, ..base.clone() },
        wgpu::Limits { max_uniform_buffer_binding_size: 64, ..base.clone() },
        wgpu::Limits { max_uniform_buffers_per_shader_stage: 1, ..base.clone() },
        wgpu::Limits { max_bindings_per_bind_group: 8, ..base.clone() },
        wgpu::Limits { max_storage_buffers_per_shader_stage: 0, ..base.clone() },
        wgpu::Limits { max_compute_workgroups_per_dimension: 0, ..base.clone() },
        wgpu::Limits { max_storage_buffer_binding_size: 0, ..base.clone() },
        wgpu::Limits { min_storage_buffer_offset_alignment: 32, ..base.clone() },
        wgpu::Limits { min_uniform_buffer_offset_alignment: 32, ..base },
    ]);
    all
}

/// The limits that vary in grid(), for messages.
pub fn words(limits: &wgpu::Limits) -> String {
    let usual = format!("{:#?}", wgpu::Limits::default());
    let these = format!("{limits:#?}");
    let changed = these.lines().zip(usual.lines()).filter(|(a, b)| a != b);
    changed.map(|(line, _)| line.trim()).collect::<Vec<_>>().join(" ")
}
