//! What every GPU test needs: a device, random inputs, and how far two results are apart.

use std::sync::OnceLock;

use rand::{SeedableRng, rngs::StdRng};
use rand_distr::{Distribution, StandardNormal};
use wgpu_attention::{Gpu, Inputs, Operand, Problem};

/// The device of all tests. No adapter is a failure, not a skip.
pub fn gpu() -> &'static Gpu {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    GPU.get_or_init(|| Gpu::new().unwrap_or_else(|error| panic!("{error}")))
}

/// The same adapter with exactly the limits every WebGPU device has: 16 KiB of workgroup memory,
/// 256 invocations, 128 MiB bindings, 8 storage buffers, no features.
pub fn default_limits_gpu() -> &'static Gpu {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    GPU.get_or_init(|| {
        let (device, queue) = device(wgpu::Limits::default());
        Gpu::from_device(device, queue)
    })
}

/// A new device with these limits.
pub fn device(limits: wgpu::Limits) -> (wgpu::Device, wgpu::Queue) {
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle().with_env();
    let instance = wgpu::Instance::new(descriptor);
    let adapter = pollster::block_on(instance.request_adapter(&Default::default()));
    let adapter = adapter.expect("an adapter: on Debian install mesa-vulkan-drivers");
    let descriptor = wgpu::DeviceDescriptor { required_limits: limits, ..Default::default() };
    pollster::block_on(adapter.request_device(&descriptor)).expect("a device with these limits")
}

/// normal(0, 1) numbers from a seed.
pub fn normal(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = StdRng::seed_from_u64(seed);
    StandardNormal.sample_iter(&mut rng).take(n).collect()
}

/// Random operands for a problem.
pub struct Data {
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
    pub bias: Option<Vec<f32>>,
}

impl Data {
    pub fn new(problem: &Problem, seed: u64) -> Data {
        let operand = |operand: Operand| {
            normal(problem.elements(operand) as usize, 8 * seed + operand as u64)
        };
        let bias = operand(Operand::Bias);
        Data {
            q: operand(Operand::Q),
            k: operand(Operand::K),
            v: operand(Operand::V),
            bias: (!bias.is_empty()).then_some(bias),
        }
    }

    pub fn inputs(&self) -> Inputs<'_> {
        let inputs = Inputs::new(&self.q, &self.k, &self.v);
        match &self.bias {
            Some(bias) => inputs.bias(bias),
            None => inputs,
        }
    }
}

/// Largest absolute difference; infinite where one is NaN or infinite and the other is not the
/// same, or where the lengths differ.
pub fn max_error(got: &[f32], want: &[f32]) -> f32 {
    if got.len() != want.len() {
        return f32::INFINITY;
    }
    let error = |(&got, &want): (&f32, &f32)| match got == want || (got.is_nan() && want.is_nan()) {
        true => 0.0,
        false if (got - want).is_finite() => (got - want).abs(),
        false => f32::INFINITY,
    };
    got.iter().zip(want).map(error).fold(0.0, f32::max)
}
