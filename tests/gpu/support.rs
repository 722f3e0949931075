//! What every GPU test needs: a device, random inputs, and how far two results are apart.

use std::sync::{Mutex, OnceLock};

use wgpu_attention::Gpu;

use crate::program::Program;

pub use wgpu_attention_support::data::{Data, max_error, normal};

/// How many tests at most have a device that no other uses at the time.
const LANES: usize = 4;

/// What tests share that do not run beside each other. A software driver compiles what a queue's
/// commands need one kernel after another: with a queue for all, the other cores would wait.
pub struct PerLane<T>([OnceLock<T>; LANES]);

impl<T> PerLane<T> {
    pub const fn new() -> PerLane<T> {
        PerLane([const { OnceLock::new() }; LANES])
    }

    /// That of this thread's lane. Threads that a test starts get it from the test's own.
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        thread_local! {
            static LANE: Lane = Lane::take();
        }
        LANE.with(|lane| self.0[lane.0].get_or_init(init))
    }
}

/// A thread's place, until it ends, among those that run now.
struct Lane(usize);

static LANE_USERS: Mutex<[usize; LANES]> = Mutex::new([0; LANES]);

impl Lane {
    fn take() -> Lane {
        let mut users = LANE_USERS.lock().expect("no panic");
        let (lane, least) =
            users.iter_mut().enumerate().min_by_key(|(_, users)| **users).expect("a lane");
        *least += 1;
        Lane(lane)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        LANE_USERS.lock().expect("no panic")[self.0] -= 1;
    }
}

/// The device of this test. No adapter is a failure, not a skip.
pub fn gpu() -> &'static Gpu {
    static GPU: PerLane<Gpu> = PerLane::new();
    GPU.get_or_init(|| Gpu::new().unwrap_or_else(|error| panic!("{error}")))
}

/// The same adapter with exactly the limits every WebGPU device has: 16 KiB of workgroup memory,
/// 256 invocations, 128 MiB bindings, 8 storage buffers, no features.
pub fn default_limits_gpu() -> &'static Gpu {
    static GPU: PerLane<Gpu> = PerLane::new();
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
