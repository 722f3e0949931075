//! Pretended devices whose shaders can use subgroups.

/// With lanes between two numbers.
pub fn device(descriptor: &wgpu::DeviceDescriptor<'_>, [least, most]: [u32; 2]) -> wgpu::Device {
    let mut options = wgpu::NoopBackendOptions::enabled();
    (options.subgroup_min_size, options.subgroup_max_size) = (Some(least), Some(most));
    let mut instance = wgpu::InstanceDescriptor::new_without_display_handle();
    instance.backends = wgpu::Backends::NOOP;
    instance.backend_options.noop = options;
    let instance = wgpu::Instance::new(instance);
    let adapter = pollster::block_on(instance.request_adapter(&Default::default()));
    let required_features = descriptor.required_features | wgpu::Features::SUBGROUP;
    let descriptor = wgpu::DeviceDescriptor { required_features, ..descriptor.clone() };
    let device = adapter.expect("an adapter").request_device(&descriptor);
    pollster::block_on(device).expect("a device").0
}
