//! How long a bound plan takes, and what it computes.

use std::time::{Duration, Instant};

use futures_intrusive::channel::shared::oneshot_channel;

use crate::host::{Gpu, transfer};
use crate::scope::{Later, Scope};
use crate::{Bound, Error};

/// Calls of one submit at most.
const MOST_CALLS: u32 = 1000;
/// What a measurement should last by the device's clock, which ticks finely, and by the host's, which
/// sees the submit as well.
const BY_DEVICE: Duration = Duration::from_millis(2);
const BY_HOST: Duration = Duration::from_millis(20);

/// Measures by timestamp queries where the device has them and they make sense, else from submit to
/// completion.
pub(super) struct Clock<'g> {
    gpu: &'g Gpu,
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

impl<'g> Clock<'g> {
    pub fn new(gpu: &'g Gpu) -> Result<Clock<'g>, Error> {
        let has = gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        // Mesa's llvmpipe writes the last stamp before the last dispatch is done; and where a CPU runs
        // the shaders, the host's clock sees all there is to see.
        let software = gpu.device.adapter_info().device_type == wgpu::DeviceType::Cpu;
        let stamps = if has && !software { Some(Stamps::new(gpu)?) } else { None };
        Ok(Clock { gpu, stamps })
    }

    /// Calls that a measurement should consist of, if one takes so many seconds, and none of which
    /// should take longer than `most`.
    pub fn calls(&self, seconds: f64, most: Duration) -> u32 {
        let long_enough = if self.stamps.is_some() { BY_DEVICE } else { BY_HOST };
        calls(seconds, long_enough.min(most))
    }

    /// The first calls. From then on the device's clock is used only if it agreed with the host's on
    /// how long many of them took.
    pub fn first(&mut self, bound: &Bound) -> Result<(), Error> {
        self.submit(bound, 1)?;
        if self.stamps.is_some() {
            let (wall, _) = self.submit(bound, 1)?;
            let (wall, stamped) = self.submit(bound, calls(wall, BY_HOST))?;
            if !stamped.is_some_and(|stamped| 0.5 * wall <= stamped && stamped <= 1.1 * wall) {
                self.stamps = None;
            }
        }
        Ok(())
    }

    /// Seconds that one of so many calls takes, all in one submit.
    pub fn time(&self, bound: &Bound, calls: u32) -> Result<f64, Error> {
        let (wall, stamped) = self.submit(bound, calls)?;
        Ok(stamped.unwrap_or(wall) / f64::from(calls))
    }

    /// Seconds on the host's and, if they make sense, on the device's clock.
    fn submit(&self, bound: &Bound, calls: u32) -> Result<(f64, Option<f64>), Error> {
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
        let Some(Stamps { readback, period, .. }) = &self.stamps else { return Ok((wall, None)) };
        let ticks = read(self.gpu, readback)?;
        let ticks: [u64; 2] = [0, 8].map(|at| bytemuck::pod_read_unaligned(&ticks[at..at + 8]));
        let stamped = ticks[1].wrapping_sub(ticks[0]) as f64 * period;
        Ok((wall, Some(stamped).filter(|&stamped| stamped > 0.0 && stamped <= 1.1 * wall)))
    }
}

/// Calls of so many seconds that last long enough.
fn calls(seconds: f64, long_enough: Duration) -> u32 {
    ((long_enough.as_secs_f64() / seconds.max(1e-9)) as u32).clamp(1, MOST_CALLS)
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

    #[test]
    fn calls_that_last_long_enough() {
        assert_eq!(calls(1e-3, BY_HOST), 20);
        assert_eq!(calls(1e-3, BY_DEVICE), 2);
        assert_eq!(calls(1.0, BY_HOST), 1);
        for tiny in [0.0, -1.0, f64::NAN] {
            assert_eq!(calls(tiny, BY_HOST), MOST_CALLS);
        }
    }

    /// Stamps of many calls, on whatever adapter there is: all but the last one are seen everywhere.
    #[test]
    fn the_clocks_agree() {
        let gpu = Gpu::new().expect("an adapter: on Debian install mesa-vulkan-drivers");
        if !gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            println!("no timestamp queries here");
            return;
        }
        let problem = Problem::new(Shape::self_attention(1, 2, 64, 16));
        let operands = Operands::new(&gpu, &problem).expect("operands");
        let plan = gpu.planner().plan(&problem).expect("a plan");
        let bound = plan.bind(operands.buffers()).expect("bound");
        let clock = Clock { gpu: &gpu, stamps: Some(Stamps::new(&gpu).expect("queries")) };
        clock.submit(&bound, 1).expect("a submit");
        let ratio = |_| {
            let (wall, stamped) = clock.submit(&bound, 200).expect("a submit");
            stamped.expect("a time") / wall
        };
        let ratio = (0..5).map(ratio).fold(0.0, f64::max);
        println!("the device sees {ratio:.3} of the host's time");
        assert!(ratio > 0.5, "{ratio}");
    }
}
