//! Two plans in turn, on another clock than the tuner's: submit to completion.

use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};
use wgpu_attention::{Append, Bound, Buffers, Gpu, KvCache, Operand, Plan, Problem};

fn normal(n: usize, seed: u64) -> Vec<f32> {
    StandardNormal.sample_iter(StdRng::seed_from_u64(seed)).take(n).collect()
}

/// The least of what the second plan takes of the first one's time, over up to four tries: medians of
/// pairs that take turns. Noise can fake a slow one in one try; a slow one is slow in all.
pub fn ratio(gpu: &Gpu, problem: &Problem, plans: [&Plan; 2], enough: f64) -> f64 {
    let made = Made::new(gpu, problem);
    let bound = plans.map(|plan| made.bind(plan));
    let calls = bound.each_ref().map(|bound| {
        run(gpu, bound, 1);
        (20e-3 / run(gpu, bound, 1)).clamp(1.0, 200.0) as u32
    });
    let calls = calls[0].max(calls[1]);
    let mut least = f64::INFINITY;
    for tries in 1..=4 {
        let mut ratios: Vec<f64> = (0..6 * tries + 1)
            .map(|round| {
                let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
                let mut times = [0.0; 2];
                for at in order {
                    times[at] = run(gpu, &bound[at], calls);
                }
                times[1] / times[0]
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        least = least.min(ratios[ratios.len() / 2]);
        if least <= enough {
            break;
        }
    }
    least
}

/// Random rows, and zeros for everything else.
struct Made<'g> {
    gpu: &'g Gpu,
    held: Vec<(Operand, wgpu::Buffer)>,
    cache: Option<KvCache>,
}

impl<'g> Made<'g> {
    fn new(gpu: &'g Gpu, problem: &Problem) -> Made<'g> {
        let mut held = Vec::new();
        let operands = [Operand::Q, Operand::K, Operand::V, Operand::O, Operand::Bias];
        for operand in operands.into_iter().filter(|&operand| problem.elements(operand) > 0) {
            // Random words of f32 would not do as halves: leave those 0.
            let bytes = problem.bytes(operand);
            let is_f32 = bytes == 4 * problem.elements(operand);
            let words =
                if is_f32 { normal(bytes as usize / 4, 1) } else { vec![0.0; bytes as usize / 4] };
            held.push((operand, buffer(gpu, &words)));
        }
        Made { gpu, held, cache: cache(gpu, problem) }
    }

    fn bind(&self, plan: &Plan) -> Bound {
        let scratch = buffer(self.gpu, &vec![0.0; plan.scratch_bytes() as usize / 4]);
        let all = Buffers::default().with(Operand::Scratch, &scratch);
        let all = self.held.iter().fold(all, |all, (operand, buffer)| all.with(*operand, buffer));
        plan.bind(self.cache.as_ref().map_or(all, |cache| all.cache(cache))).expect("bound")
    }
}

/// A full cache, if the problem reads one.
fn cache(gpu: &Gpu, problem: &Problem) -> Option<KvCache> {
    let shape = super::classes::cache_of(problem)?;
    let mut cache = KvCache::new(gpu.planner(), shape).expect("a cache");
    let append = Append::new(shape, shape.capacity);
    let [k, v] =
        [Operand::K, Operand::V].map(|o| buffer(gpu, &normal(append.elements(o) as usize, 2)));
    let rows = Buffers::default().with(Operand::K, &k).with(Operand::V, &v).cache(&cache);
    let bound = gpu.planner().plan_append(&append).expect("a plan").bind(rows).expect("bound");
    cache.extend(gpu.queue(), &vec![shape.capacity; shape.sequences as usize]).expect("room");
    submit(gpu, |encoder| bound.encode_in(encoder));
    Some(cache)
}

fn buffer(gpu: &Gpu, words: &[f32]) -> wgpu::Buffer {
    use wgpu::BufferUsages as Usage;
    let descriptor = wgpu::BufferDescriptor {
        label: None,
        size: 4 * words.len() as u64,
        usage: Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST,
        mapped_at_creation: false,
    };
    let buffer = gpu.device().create_buffer(&descriptor);
    gpu.queue().write_buffer(&buffer, 0, bytemuck::cast_slice(words));
    buffer
}

/// Seconds of so many calls.
fn run(gpu: &Gpu, bound: &Bound, calls: u32) -> f64 {
    let begun = Instant::now();
    submit(gpu, |encoder| (0..calls).for_each(|_| bound.encode_in(encoder)));
    begun.elapsed().as_secs_f64()
}

fn submit(gpu: &Gpu, record: impl FnOnce(&mut wgpu::CommandEncoder)) {
    let mut encoder = gpu.device().create_command_encoder(&Default::default());
    record(&mut encoder);
    gpu.queue().submit([encoder.finish()]);
    gpu.device().poll(wgpu::PollType::wait_indefinitely()).expect("a live device");
}
