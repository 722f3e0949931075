//! What every GPU test needs: a device, random inputs, and how far two results are apart.

use std::sync::OnceLock;

use wgpu_attention::Gpu;

use crate::program::Program;

pub use wgpu_attention_support::data::{Data, max_error, normal};

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
        let Program { device, queue, attention, .. } = Program::shared();
        Gpu::from_device(device.clone(), queue.clone()).with_attention(attention.clone())
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
