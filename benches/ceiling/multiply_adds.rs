//! What an adapter does of multiply-adds in registers: the wall for every kernel here.

use std::time::Instant;

use wgpu_attention::Gpu;

/// f32, and the file's kernel.
const SHADER: &str = concat!("alias Number = f32;\n", include_str!("multiply_adds.wgsl"));
const GROUPS: u32 = 64;
/// Floating-point operations of a dispatch.
pub const OPERATIONS: f64 = 64.0 * GROUPS as f64 * 2048.0 * 4.0 * 3.0 * 4.0 * 2.0;

/// Dispatches of multiply-adds on a device.
pub struct Ceiling<'a> {
    gpu: &'a Gpu,
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
}

impl<'a> Ceiling<'a> {
    pub fn new(gpu: &'a Gpu) -> Ceiling<'a> {
        let device = gpu.device();
        let source = wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(SHADER.into()),
        };
        // SAFETY: the loop is bounded, and `sums` has an element for each invocation.
        let module = unsafe {
            device.create_shader_module_trusted(source, wgpu::ShaderRuntimeChecks::unchecked())
        };
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        let sums = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: u64::from(GROUPS) * 64 * 16,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        });
        let resource = sums.as_entire_binding();
        let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[wgpu::BindGroupEntry { binding: 0, resource }],
        });
        Ceiling { gpu, pipeline, bind_group }
    }

    /// One dispatch, from recording to done.
    pub fn run(&self) {
        let mut encoder = self.gpu.device().create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bind_group, &[]);
        pass.dispatch_workgroups(GROUPS, 1, 1);
        drop(pass);
        self.gpu.queue().submit([encoder.finish()]);
        self.gpu.device().poll(wgpu::PollType::wait_indefinitely()).expect("a live device");
    }

    /// GFLOP/s, a multiply-add counted as two operations: the best of five after a first one.
    pub fn rate(&self) -> f64 {
        self.run();
        let time = || {
            let begun = Instant::now();
            self.run();
            begun.elapsed().as_secs_f64()
        };
        let best = (0..5).map(|_| time()).fold(f64::MAX, f64::min);
        OPERATIONS / best / 1e9
    }
}
