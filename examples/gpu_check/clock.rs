//! Times of calls: the GPU's own stamps where it has them, else a clock on the wall.

use std::time::{Duration, Instant};

use super::card::Card;
use super::line::{Outcome, Times, fit};

/// Calls of one submission.
const MOST: u32 = 32;
/// What the calls of one submission may take together, in seconds.
const SUBMISSION: f64 = 0.1;
/// Enough to leave a card's idle clock rate.
const WARM_UP: Duration = Duration::from_millis(60);
/// Long enough once there are so many calls; too long in any case.
const ENOUGH: Duration = Duration::from_millis(300);
const CALLS: usize = 5;
const MOST_TIME: Duration = Duration::from_secs(2);

/// Where the GPU writes the time before and after each call.
struct Stamps {
    set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
}

pub struct Clock<'a> {
    card: &'a Card,
    stamps: Option<Stamps>,
}

impl<'a> Clock<'a> {
    pub fn new(card: &'a Card) -> Clock<'a> {
        let device = &card.device;
        let stamps = card.stamps.get().then(|| Stamps {
            set: device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: 2 * MOST,
            }),
            resolved: device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: u64::from(2 * MOST) * 8,
                usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            }),
        });
        Clock { card, stamps }
    }

    /// A call again and again; it has been made once before.
    pub fn time(&self, call: &dyn Fn(&mut wgpu::ComputePass<'_>)) -> Result<Times, Outcome> {
        let begun = Instant::now();
        let mut one = f64::INFINITY;
        let mut runs = 0;
        while runs < 2 || begun.elapsed() < WARM_UP {
            let begun = Instant::now();
            self.together(call, 1)?;
            one = one.min(begun.elapsed().as_secs_f64());
            runs += 1;
        }
        let (begun, mut seconds) = (Instant::now(), Vec::new());
        let count = ((SUBMISSION / one) as u32).clamp(1, MOST);
        let enough = |calls| begun.elapsed() > ENOUGH && calls >= CALLS;
        while seconds.is_empty() || !(enough(seconds.len()) || begun.elapsed() > MOST_TIME) {
            seconds.extend(self.together(call, count)?);
        }
        seconds.sort_by(f64::total_cmp);
        let calls = seconds.len();
        Ok(Times { median: seconds[calls / 2], best: seconds[0], calls: calls as u32 })
    }

    /// Some calls in one submission: seconds of each, or of all by their number.
    fn together(
        &self,
        call: &dyn Fn(&mut wgpu::ComputePass<'_>),
        count: u32,
    ) -> Result<Vec<f64>, Outcome> {
        let stamps = self.stamps.as_ref().filter(|_| self.card.stamps.get());
        let mut encoder = self.card.device.create_command_encoder(&Default::default());
        for i in 0..count {
            let timestamp_writes = stamps.map(|stamps| wgpu::ComputePassTimestampWrites {
                query_set: &stamps.set,
                beginning_of_pass_write_index: Some(2 * i),
                end_of_pass_write_index: Some(2 * i + 1),
            });
            let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
            call(&mut encoder.begin_compute_pass(&descriptor));
        }
        if let Some(stamps) = stamps {
            encoder.resolve_query_set(&stamps.set, 0..2 * count, &stamps.resolved, 0);
        }
        let begun = Instant::now();
        self.card.submit(encoder)?;
        let wall = begun.elapsed().as_secs_f64();
        if let Some(stamps) = stamps {
            let places = [(0, u64::from(2 * count) * 8)];
            let bytes = self.card.read(&stamps.resolved, places.into_iter())?;
            let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&bytes);
            let period = 1e-9 * f64::from(self.card.queue.get_timestamp_period());
            let taken = |pair: &[u64]| period * pair[1].wrapping_sub(pair[0]) as f64;
            let seconds: Vec<f64> = ticks.chunks(2).map(taken).collect();
            if fit(&seconds, wall) {
                return Ok(seconds);
            }
            self.card.stamps.set(false);
        }
        Ok(vec![wall / f64::from(count)])
    }
}
