//! Pretended devices whose shaders can multiply matrices.

use crate::lanes;

/// With subgroups of so many lanes; options say which sizes.
pub fn device(descriptor: &wgpu::DeviceDescriptor<'_>, sizes: [u32; 2]) -> wgpu::Device {
    let required_features = descriptor.required_features
        | wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX
        | wgpu::Features::SHADER_F16;
    // SAFETY: nothing runs on this device.
    let experimental_features = unsafe { wgpu::ExperimentalFeatures::enabled() };
    let descriptor =
        wgpu::DeviceDescriptor { required_features, experimental_features, ..descriptor.clone() };
    lanes::device(&descriptor, sizes)
}
