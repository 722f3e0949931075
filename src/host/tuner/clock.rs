//! How long a bound plan takes, and what it computes.

use std::time::{Duration, Instant};

use futures_intrusive::channel::shared::oneshot_channel;

use crate::host::{Gpu, transfer};
use crate::scope::{Later, Scope};
use crate::{Bound, Error};

/// Calls of one submit at most.
const MOST_CALLS: u32 = 1000;
/// What a measurement should last: the device's own clock ticks finely, the host's sees the submit.
const LONG_ENOUGH: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(20)];

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
        let stamps = if has { Some(Stamps::new(gpu)?) } else { None };
        Ok(Clock { gpu, stamps })
    }

    /// Calls that a measurement should consist of, if one takes so many seconds.
    pub fn calls(&self, seconds: f64, most: Duration) -> u32 {
        let long_enough = LONG_ENOUGH[usize::from(self.stamps.is_none())].min(most);
        ((long_enough.as_secs_f64() / seconds.max(1e-9)) as u32).clamp(1, MOST_CALLS)
    }

    /// The first call, on the host's clock, in seconds. From then on the device's clock is used only if
    /// it made sense here.
    pub fn first(&mut self, bound: &Bound) -> Result<f64, Error> {
        let (wall, stamped) = self.submit(bound, 1)?;
        if stamped.is_none() {
            self.stamps = None;
        }
        Ok(wall)
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
