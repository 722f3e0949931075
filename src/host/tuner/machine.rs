//! The machine's own clocks: how long its submits last.

use std::time::{Duration, Instant};

use futures_intrusive::channel::shared::oneshot_channel;

use super::clock::Timer;
use crate::host::{Gpu, transfer};
use crate::scope::{Later, Scope};
use crate::{Bound, Error};

/// Times submits from begin to completion, and where the device has timestamp queries and they make
/// sense, by those.
pub(super) struct Machine<'g> {
    gpu: &'g Gpu,
    begun: Instant,
    stamps: Option<Stamps>,
}

/// Two queries, and where their results go.
struct Stamps {
    set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    readback: wgpu::Buffer,
    /// Seconds of a tick.
    period: f64,
}

impl<'g> Machine<'g> {
    pub fn new(gpu: &'g Gpu) -> Result<Machine<'g>, Error> {
        let begun = Instant::now();
        let has = gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        // Mesa's llvmpipe writes the last stamp before the last dispatch is done; and where a CPU runs
        // the shaders, the host's clock sees all there is to see.
        let software = gpu.device.adapter_info().device_type == wgpu::DeviceType::Cpu;
        let stamps = if has && !software { Some(Stamps::new(gpu)?) } else { None };
        Ok(Machine { gpu, begun, stamps })
    }

    /// The submit's seconds on the host's clock, and the device's ticks where it begins and ends.
    fn ticks(&self, bound: &Bound, calls: u32) -> Result<(f64, Option<[u64; 2]>), Error> {
        let Gpu { device, queue, .. } = self.gpu;
        let mut scope = Later::default();
        let begun = Instant::now();
        let submission = scope.run(device, || {
            let mut encoder = device.create_command_encoder(&Default::default());
            let timestamp_writes =
                self.stamps.as_ref().map(|stamps| wgpu::ComputePassTimestampWrites {
                    query_set: &stamps.set,
                    beginning_of_pass_write_index: Some(0),
                    end_of_pass_write_index: Some(1),
                });
            let label = Some("wgpu-attention tuner");
            let descriptor = wgpu::ComputePassDescriptor { label, timestamp_writes };
            let mut pass = encoder.begin_compute_pass(&descriptor);
            (0..calls).for_each(|_| bound.encode(&mut pass));
            drop(pass);
            if let Some(Stamps { set, resolved, readback, .. }) = &self.stamps {
                encoder.resolve_query_set(set, 0..2, resolved, 0);
                encoder.copy_buffer_to_buffer(resolved, 0, readback, 0, readback.size());
            }
            queue.submit([encoder.finish()])
        })?;
        pollster::block_on(scope.outcome())?;
        pollster::block_on(transfer::done(device, submission))?;
        let wall = begun.elapsed().as_secs_f64();
        let Some(Stamps { readback, .. }) = &self.stamps else { return Ok((wall, None)) };
        let ticks = read(self.gpu, readback)?;
        Ok((wall, Some([0, 8].map(|at| bytemuck::pod_read_unaligned(&ticks[at..at + 8])))))
    }
}

impl Timer for Machine<'_> {
    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn submit(&mut self, bound: &Bound, calls: u32) -> Result<(f64, Option<f64>), Error> {
        let (wall, ticks) = self.ticks(bound, calls)?;
        let stamped =
            self.stamps.as_ref().zip(ticks).map(|(Stamps { period, .. }, [begin, end])| {
                end.wrapping_sub(begin) as f64 * period
            });
        Ok((wall, stamped))
    }

    fn drop_stamps(&mut self) {
        self.stamps = None;
    }
}

impl Stamps {
    fn new(gpu: &Gpu) -> Result<Stamps, Error> {
        use wgpu::BufferUsages as Usage;
        let device = &gpu.device;
        Later::default().run(device, || {
            let buffer = |usage| {
                device.create_buffer(&wgpu::BufferDescriptor {
                    label: Some("wgpu-attention tuner"),
                    size: 2 * 8,
                    usage,
                    mapped_at_creation: false,
                })
            };
            Stamps {
                set: device.create_query_set(&wgpu::QuerySetDescriptor {
                    label: Some("wgpu-attention tuner"),
                    ty: wgpu::QueryType::Timestamp,
                    count: 2,
                }),
                resolved: buffer(Usage::QUERY_RESOLVE | Usage::COPY_SRC),
                readback: buffer(Usage::COPY_DST | Usage::MAP_READ),
                period: f64::from(gpu.queue.get_timestamp_period()) * 1e-9,
            }
        })
    }
}

/// A mappable buffer's bytes, after all that was submitted.
pub(super) fn read(gpu: &Gpu, buffer: &wgpu::Buffer) -> Result<Vec<u8>, Error> {
    let (sender, mapped) = oneshot_channel();
    let mut scope = Later::default();
    let submission = scope.run(&gpu.device, || {
        buffer.map_async(wgpu::MapMode::Read, .., move |result| {
            let _ = sender.send(result); // Nobody waits any more: nothing to do.
        });
        gpu.queue.submit([])
    })?;
    pollster::block_on(scope.outcome())?;
    pollster::block_on(transfer::done(&gpu.device, submission))?;
    match pollster::block_on(mapped.receive()) {
        Some(Ok(())) => {}
        _ => return Err(Error::DeviceLost("the device dropped a readback".into())),
    }
    let view = buffer.get_mapped_range(..);
    let bytes = view.map_err(|error| Error::Device(error.to_string()))?.to_vec();
    buffer.unmap();
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tuner::operands::Operands;
    use crate::{Problem, Shape};

    /// Ticks of two submits, and what the host's clock says has passed between them: at least the pause,
    /// at most all of it. However slow or busy the machine, both hold.
    #[test]
    fn ticks_are_time() {
        let gpu = Gpu::new().expect("an adapter: on Debian install mesa-vulkan-drivers");
        let problem = Problem::new(Shape::self_attention(1, 2, 40, 16));
        let operands = Operands::new(&gpu, &problem).expect("operands");
        let plan = gpu.planner().plan(&problem).expect("a plan");
        let bound = plan.bind(operands.buffers()).expect("bound");
        let mut machine = Machine::new(&gpu).expect("a clock");
        machine.stamps = None;
        assert_eq!(machine.ticks(&bound, 1).expect("a submit").1, None);
        if !gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            println!("1 skipped: no timestamp queries here");
            return;
        }
        // On software adapters, too, where the tuner does without.
        machine.stamps = Some(Stamps::new(&gpu).expect("queries"));
        let ticks = || machine.ticks(&bound, 1).expect("a submit").1.expect("ticks");
        let before = Instant::now();
        let [first, _] = ticks();
        let between = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
        let least = between.elapsed().as_secs_f64();
        let [second, end] = ticks();
        let most = before.elapsed().as_secs_f64();
        let period = machine.stamps.as_ref().expect("queries").period;
        let passed = second.wrapping_sub(first) as f64 * period;
        println!("{passed} s by the device, by the host from {least} to {most}");
        assert!(0.9 * least <= passed && passed <= 1.1 * most, "{least}, {passed}, {most}");
        assert!(second <= end, "a pass ends after it began");
    }
}
