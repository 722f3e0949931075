//! Where the page computes.

use futures_intrusive::channel::shared::{OneshotReceiver, oneshot_channel};
use wasm_bindgen::prelude::*;
use wgpu_attention::Gpu;

use crate::told;

/// A WebGPU device, or the CPU reference.
#[wasm_bindgen]
pub struct Engine {
    device: Option<Device>,
}

struct Device {
    gpu: Gpu,
    lost: OneshotReceiver<String>,
}

#[wasm_bindgen]
impl Engine {
    /// The browser's best adapter, with all its limits.
    ///
    /// # Errors
    /// The browser has no WebGPU, or no adapter.
    pub async fn webgpu() -> Result<Engine, JsError> {
        let gpu = Gpu::new_async().await.map_err(told)?;
        let (sender, lost) = oneshot_channel();
        gpu.device().set_device_lost_callback(move |_, why| {
            let _ = sender.send(why); // Nobody asked for the word: nothing to do.
        });
        Ok(Engine { device: Some(Device { gpu, lost }) })
    }

    /// The CPU reference in f64, and the fused kernel's twin in f32.
    pub fn cpu() -> Engine {
        Engine { device: None }
    }

    /// True if kernels compute.
    #[wasm_bindgen(getter)]
    pub fn on_gpu(&self) -> bool {
        self.device.is_some()
    }

    /// Resolves with the reason when the device is lost; on the CPU never.
    pub async fn lost(&self) -> String {
        match &self.device {
            Some(device) => device.lost.receive().await.unwrap_or_default(),
            None => std::future::pending().await,
        }
    }

    /// The adapter's description, where the browser tells it.
    #[wasm_bindgen(getter)]
    pub fn adapter(&self) -> String {
        self.gpu().map(|gpu| gpu.device().adapter_info().name).unwrap_or_default()
    }

    /// The largest buffer that this device lets a kernel see, in bytes; 0 on the CPU.
    #[wasm_bindgen(getter)]
    pub fn largest_binding(&self) -> f64 {
        self.gpu().map_or(0.0, |gpu| {
            let limits = gpu.device().limits();
            limits.max_storage_buffer_binding_size.min(limits.max_buffer_size) as f64
        })
    }
}

impl Engine {
    pub(crate) fn gpu(&self) -> Option<&Gpu> {
        self.device.as_ref().map(|device| &device.gpu)
    }
}
