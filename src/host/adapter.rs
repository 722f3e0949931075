//! The adapter of programs that do not choose one.

use crate::Error;

/// What kernels use, and what the tuner and pipeline files do.
const USEFUL: wgpu::Features = wgpu::Features::SHADER_F16
    .union(wgpu::Features::SUBGROUP)
    .union(wgpu::Features::TIMESTAMP_QUERY)
    .union(wgpu::Features::PIPELINE_CACHE);

/// A device with all limits of the adapter that the environment names, or of the best one.
pub(super) async fn device(
    instance: &wgpu::Instance,
) -> Result<(wgpu::Device, wgpu::Queue), Error> {
    let none = |why: String| {
        Error::NoAdapter(format!(
            "{why}. Install a driver: on Debian or Ubuntu `apt-get install \
             mesa-vulkan-drivers` brings one that needs no GPU"
        ))
    };
    let adapter = match wanted_name() {
        Some(name) => {
            let adapters = instance.enumerate_adapters(wgpu::Backends::all()).await;
            let has = |a: &wgpu::Adapter| a.get_info().name.to_lowercase().contains(&name);
            let found = adapters.into_iter().find(has);
            found.ok_or_else(|| none(format!("WGPU_ADAPTER_NAME: no name contains {name:?}")))?
        }
        None => {
            let options = wgpu::RequestAdapterOptions {
                power_preference: wgpu::PowerPreference::HighPerformance,
                ..Default::default()
            };
            instance.request_adapter(&options).await.map_err(|error| none(error.to_string()))?
        }
    };
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("wgpu-attention"),
        required_features: adapter.features() & USEFUL,
        required_limits: adapter.limits(),
        ..Default::default()
    };
    let device = adapter.request_device(&descriptor).await;
    device.map_err(|error| none(error.to_string()))
}

/// From `WGPU_ADAPTER_NAME`, in lower case.
fn wanted_name() -> Option<String> {
    std::env::var("WGPU_ADAPTER_NAME").ok().map(|name| name.to_lowercase())
}
