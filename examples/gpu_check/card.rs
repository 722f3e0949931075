//! The adapter, a device of it, and what goes wrong there: reported, never a panic or a hang.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wgpu_attention::{Attention, Error, Options};

use super::line::Outcome;

/// No submission here is meant to take a second: a device that needs so long has hung.
const PATIENCE: Duration = Duration::from_secs(30);

impl From<Error> for Outcome {
    fn from(error: Error) -> Outcome {
        match error {
            // The device's to set.
            Error::Limit { .. } => Outcome::LeftOut(error.to_string()),
            _ => Outcome::Failed(error.to_string()),
        }
    }
}

/// The adapter that the environment names, or the best one.
pub fn adapter() -> Result<wgpu::Adapter, String> {
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle().with_env();
    let instance = wgpu::Instance::new(descriptor);
    let Ok(name) = std::env::var("WGPU_ADAPTER_NAME") else {
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        let adapter = pollster::block_on(instance.request_adapter(&options));
        return adapter.map_err(|error| format!("no adapter: {error}"));
    };
    let all = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let names = all.iter().map(|a| a.get_info().name).collect::<Vec<_>>().join(", ");
    let is_it = |a: &wgpu::Adapter| a.get_info().name.to_lowercase().contains(&name.to_lowercase());
    let none = || format!("WGPU_ADAPTER_NAME: no name contains {name:?}; there are: {names}");
    all.into_iter().find(is_it).ok_or_else(none)
}

/// A device with all limits of the adapter and the features that anything here can use.
pub struct Card {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub attention: Attention,
    /// Sizes and types of cooperative matrices, if the device has them.
    pub matrices: Vec<wgpu::CooperativeMatrixProperties>,
    /// Whether the device's timestamps are of use. A software adapter's tell when its work was given
    /// to threads.
    pub stamps: Cell<bool>,
    /// What the device reported that no call returned; the last one first.
    trouble: Arc<Mutex<Vec<Outcome>>>,
}

impl Card {
    pub fn open(adapter: &wgpu::Adapter) -> Result<Card, String> {
        use wgpu::Features as F;
        let useful = F::SHADER_F16 | F::SUBGROUP | F::TIMESTAMP_QUERY;
        let with = adapter.features() & (useful | F::EXPERIMENTAL_COOPERATIVE_MATRIX);
        let request = |features| {
            pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
                label: Some("gpu_check"),
                required_features: features,
                required_limits: adapter.limits(),
                // SAFETY: what an experimental feature may break is what this program is to find.
                experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
                ..Default::default()
            }))
        };
        let made = request(with).or_else(|_| request(with & useful));
        let (device, queue) = made.map_err(|error| format!("no device: {error}"))?;
        let trouble = Arc::<Mutex<Vec<Outcome>>>::default();
        let reports = trouble.clone();
        device.on_uncaptured_error(Arc::new(move |error| {
            let outcome = match &error {
                wgpu::Error::OutOfMemory { .. } => Outcome::LeftOut("not enough memory".into()),
                _ => Outcome::Failed(error.to_string()),
            };
            reports.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        }));
        let lost = trouble.clone();
        device.set_device_lost_callback(move |reason, why| {
            if reason != wgpu::DeviceLostReason::Destroyed {
                let outcome = Outcome::Failed(format!("the device was lost: {why}"));
                lost.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
            }
        });
        let attention = Attention::with(&device, Options::from_adapter(adapter));
        let has = device.features().contains(F::EXPERIMENTAL_COOPERATIVE_MATRIX);
        let matrices = if has { adapter.cooperative_matrix_properties() } else { vec![] };
        let is_gpu = adapter.get_info().device_type != wgpu::DeviceType::Cpu;
        let stamps = Cell::new(is_gpu && device.features().contains(F::TIMESTAMP_QUERY));
        Ok(Card { device, queue, attention, matrices, stamps, trouble })
    }

    /// A buffer that kernels use and this program fills and reads.
    pub fn buffer(&self, bytes: u64) -> Result<wgpu::Buffer, Outcome> {
        use wgpu::BufferUsages as Usage;
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes.max(4),
            usage: Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC,
            mapped_at_creation: false,
        });
        self.healthy().map(|()| buffer)
    }

    /// Submits, and waits until the GPU is done.
    pub fn submit(&self, encoder: wgpu::CommandEncoder) -> Result<(), Outcome> {
        let submission = Some(self.queue.submit([encoder.finish()]));
        let wait = wgpu::PollType::Wait { submission_index: submission, timeout: Some(PATIENCE) };
        let waited = self.device.poll(wait);
        self.healthy()?;
        let late = |error| Outcome::Failed(format!("not done in {PATIENCE:?}: {error}"));
        waited.map(drop).map_err(late)
    }

    /// Bytes of a buffer at these places, one after another.
    pub fn read(
        &self,
        from: &wgpu::Buffer,
        places: impl Iterator<Item = (u64, u64)>,
    ) -> Result<Vec<u8>, Outcome> {
        let places: Vec<_> = places.collect();
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: places.iter().map(|(_, bytes)| bytes).sum(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut at = 0;
        for (first, bytes) in places {
            encoder.copy_buffer_to_buffer(from, first, &staging, at, bytes);
            at += bytes;
        }
        // A mapping that fails shows when the range is asked for.
        encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., drop);
        self.submit(encoder)?;
        let view = staging.get_mapped_range(..);
        view.map(|view| view.to_vec()).map_err(|error| Outcome::Failed(error.to_string()))
    }

    fn healthy(&self) -> Result<(), Outcome> {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        // The first report names the cause.
        trouble.drain(..).next().map_or(Ok(()), Err)
    }
}

/// A panic is an outcome too.
pub fn attempt<T>(call: impl FnOnce() -> Result<T, Outcome>) -> Result<T, Outcome> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Outcome::Failed(format!("panic: {}", text.unwrap_or_default())))
    })
}
