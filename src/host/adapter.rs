//! The adapter of programs that do not choose one.

use crate::Error;
use crate::attention::MATRIX_FEATURES;

/// What kernels use, and what the tuner and pipeline files do.
const USEFUL: wgpu::Features = wgpu::Features::SHADER_F16
    .union(wgpu::Features::SUBGROUP)
    .union(wgpu::Features::TIMESTAMP_QUERY)
    .union(wgpu::Features::PIPELINE_CACHE);

fn none(why: String) -> Error {
    Error::NoAdapter(format!(
        "{why}. Install a driver: on Debian or Ubuntu `apt-get install mesa-vulkan-drivers` brings \
         one that needs no GPU"
    ))
}

/// The adapter that the environment names, or the best one.
pub(super) async fn find(instance: &wgpu::Instance) -> Result<wgpu::Adapter, Error> {
    match wanted_name() {
        Some(name) => {
            let adapters = instance.enumerate_adapters(wgpu::Backends::all()).await;
            let mut names: Vec<_> = adapters.iter().map(|a| a.get_info().name).collect();
            names.dedup();
            let has = |a: &wgpu::Adapter| a.get_info().name.to_lowercase().contains(&name);
            let found = adapters.into_iter().find(has);
            let why = format!("WGPU_ADAPTER_NAME: no name contains {name:?}");
            found.ok_or_else(|| match names.is_empty() {
                true => none(why),
                false => Error::NoAdapter(format!("{why}; there are: {}", names.join(", "))),
            })
        }
        None => {
            let options = wgpu::RequestAdapterOptions {
                power_preference: wgpu::PowerPreference::HighPerformance,
                ..Default::default()
            };
            instance.request_adapter(&options).await.map_err(|error| none(error.to_string()))
        }
    }
}

/// A device with all limits of an adapter, and what it has of the features that are of use; of those
/// that are experimental only if the caller allows them.
pub(super) async fn open(
    adapter: &wgpu::Adapter,
    experimental_features: wgpu::ExperimentalFeatures,
) -> Result<(wgpu::Device, wgpu::Queue), Error> {
    let allowed =
        if experimental_features.is_enabled() { USEFUL | MATRIX_FEATURES } else { USEFUL };
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("wgpu-attention"),
        required_features: adapter.features() & allowed,
        experimental_features,
        required_limits: adapter.limits(),
        ..Default::default()
    };
    let device = adapter.request_device(&descriptor).await;
    device.map_err(|error| none(error.to_string()))
}

/// From `WGPU_ADAPTER_NAME`, in lower case. Browsers have no environment.
#[inline(always)]
fn wanted_name() -> Option<String> {
    if cfg!(target_family = "wasm") {
        return None;
    }
    std::env::var("WGPU_ADAPTER_NAME").ok().map(|name| name.to_lowercase())
}
