//! Operands of a problem's sizes, made up, on the device.

use half::{bf16, f16};

use super::machine;
use crate::host::Gpu;
use crate::host::spare::{Spare, Use};
use crate::scope::{Later, Scope};
use crate::{Append, Attention, Buffers, CacheShape, Element, Error, KvCache, Operand, Problem};

/// Tokens that are appended to a cache at a time.
const APPENDED: u32 = 256;

/// What a problem needs, filled: pseudo-random numbers of unit variance; masks that hide a quarter of
/// the keys here and there; every sequence as long as it can be.
pub(super) struct Operands {
    held: Vec<(Operand, wgpu::Buffer)>,
    cache: Option<KvCache>,
}

impl Operands {
    /// # Errors
    /// [`Error::Limit`], [`Error::Device`] if memory runs out, [`Error::Full`] for a cache whose pages
    /// do not hold all sequences at their full length.
    pub fn new(gpu: &Gpu, problem: &Problem) -> Result<Operands, Error> {
        let mut held = Vec::new();
        for operand in problem.operands() {
            let buffer = make(gpu, operand, problem.bytes(operand))?;
            if !operand.is_written() {
                fill(gpu, &buffer, &contents(problem, operand))?;
            }
            held.push((operand, buffer));
        }
        let tokens = problem.shape().kv_len;
        let cache = problem.cache().map(|shape| full(gpu, *shape, tokens)).transpose()?;
        Ok(Operands { held, cache })
    }

    pub fn buffers(&self) -> Buffers<'_> {
        let all = Buffers::default();
        let all = self.held.iter().fold(all, |all, (operand, buffer)| all.with(*operand, buffer));
        self.cache.as_ref().map_or(all, |cache| all.cache(cache))
    }

    /// The buffer of an operand.
    #[cfg(test)]
    pub fn buffer(&self, operand: Operand) -> Option<&wgpu::Buffer> {
        self.held.iter().find(|held| held.0 == operand).map(|held| &held.1)
    }

    /// Forgets what was computed: the next answer is the next call's own.
    pub fn clear(&self, gpu: &Gpu) -> Result<(), Error> {
        submit(gpu, |encoder| {
            for (_, buffer) in self.held.iter().filter(|held| held.0.is_written()) {
                encoder.clear_buffer(buffer, 0, None);
            }
        })
    }

    /// What was computed, as f32: O and the LSE, but no matrices.
    pub fn answer(&self, gpu: &Gpu, problem: &Problem) -> Result<Vec<f32>, Error> {
        let mut numbers = Vec::new();
        for (operand, buffer) in &self.held {
            if ![Operand::O, Operand::Lse].contains(operand) {
                continue;
            }
            let staging = make_staging(gpu, buffer.size())?;
            submit(gpu, |encoder| {
                encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
            })?;
            let bytes = machine::read(gpu, &staging)?;
            let halves = || bytes.chunks_exact(2).map(|two| [two[0], two[1]]);
            match problem.element_of(*operand) {
                Element::F16 => numbers.extend(halves().map(|x| f16::from_le_bytes(x).to_f32())),
                Element::Bf16 => numbers.extend(halves().map(|x| bf16::from_le_bytes(x).to_f32())),
                _ => numbers.extend(bytemuck::pod_collect_to_vec::<u8, f32>(&bytes)),
            }
        }
        Ok(numbers)
    }
}

/// Memory of the device, of zeros.
pub(super) fn make(gpu: &Gpu, operand: Operand, size: u64) -> Result<wgpu::Buffer, Error> {
    let (got, what) = (gpu.device.limits().max_buffer_size, operand.name());
    if size > got {
        return Err(Error::Limit { what, need: size, got });
    }
    let label = format!("wgpu-attention tuner {what}");
    Later::default().run(&gpu.device, || Spare::make(&gpu.device, Use::Operand, size, &label))
}

fn make_staging(gpu: &Gpu, size: u64) -> Result<wgpu::Buffer, Error> {
    let label = "wgpu-attention tuner readback";
    Later::default().run(&gpu.device, || Spare::make(&gpu.device, Use::Readback, size, label))
}

fn fill(gpu: &Gpu, buffer: &wgpu::Buffer, bytes: &[u8]) -> Result<(), Error> {
    Later::default().run(&gpu.device, || gpu.queue.write_buffer(buffer, 0, bytes))
}

fn submit(gpu: &Gpu, record: impl FnOnce(&mut wgpu::CommandEncoder)) -> Result<(), Error> {
    Later::default().run(&gpu.device, || {
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        record(&mut encoder);
        gpu.queue.submit([encoder.finish()]);
    })
}

/// A cache whose sequences all have so many tokens.
fn full(gpu: &Gpu, shape: CacheShape, tokens: u32) -> Result<KvCache, Error> {
    let attention: &Attention = gpu.planner();
    let mut cache = KvCache::new(attention, shape)?;
    let append = Append::new(shape, tokens.min(APPENDED));
    let [k, v] = [Operand::K, Operand::V].map(|operand| {
        let buffer = make(gpu, operand, append.bytes(operand))?;
        fill(gpu, &buffer, &numbers(append.elements(operand), Element::F32, operand as u32))?;
        Ok(buffer)
    });
    let (k, v) = (k?, v?);
    let rows = Buffers::default().with(Operand::K, &k).with(Operand::V, &v);
    let bound = attention.plan_append(&append)?.bind(rows.cache(&cache))?;
    let mut left = tokens;
    while left > 0 {
        let count = left.min(APPENDED);
        cache.extend(&gpu.queue, &vec![count; shape.sequences as usize])?;
        submit(gpu, |encoder| bound.encode_in(encoder))?;
        left -= count;
    }
    Ok(cache)
}

/// The bytes of an operand that is read.
fn contents(problem: &Problem, operand: Operand) -> Vec<u8> {
    let count = problem.elements(operand);
    match operand {
        Operand::Tables => bytemuck::cast_slice(&tables(problem)).to_vec(),
        // Two random bits set of two: three of four keys are seen.
        Operand::Mask => {
            let (mut one, mut other) = (random(1), random(2));
            let words: Vec<u32> = (0..count).map(|_| one() | other()).collect();
            bytemuck::cast_slice(&words).to_vec()
        }
        _ => numbers(count, problem.element_of(operand), operand as u32),
    }
}

/// Full lengths, sequences of equal lengths, slopes of 1/2, 1/4, ..., sinks of 0.
fn tables(problem: &Problem) -> Vec<u32> {
    let shape = problem.shape();
    let mut words = vec![0; problem.elements(Operand::Tables) as usize];
    for operand in Operand::TABLES {
        let Some(range) = problem.table(operand) else { continue };
        let words = &mut words[range.start as usize..range.end as usize];
        let last = (words.len() as u64).saturating_sub(1).max(1);
        for (word, at) in words.iter_mut().zip(0u64..) {
            *word = match operand {
                Operand::QLens => shape.q_len,
                Operand::KvLens => shape.kv_len,
                Operand::CuSeqlensQ => (u64::from(shape.q_len) * at / last) as u32,
                Operand::CuSeqlensKv => (u64::from(shape.kv_len) * at / last) as u32,
                Operand::Slopes => 0.5f32.powi(1 + at as i32 % 8).to_bits(),
                _ => 0,
            };
        }
    }
    words
}

/// Uniform numbers of variance 1, as they are stored, in whole words.
fn numbers(count: u64, element: Element, seed: u32) -> Vec<u8> {
    let mut next = random(seed);
    let unit = || (f64::from(next()) / f64::from(u32::MAX) * 2.0 - 1.0) as f32 * 3f32.sqrt();
    let all = std::iter::repeat_with(unit).take(count as usize);
    let mut bytes: Vec<u8> = match element {
        Element::F16 => all.flat_map(|x| f16::from_f32(x).to_le_bytes()).collect(),
        Element::Bf16 => all.flat_map(|x| bf16::from_f32(x).to_le_bytes()).collect(),
        _ => all.flat_map(f32::to_le_bytes).collect(),
    };
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Xorshift of 32 bits.
fn random(seed: u32) -> impl FnMut() -> u32 {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    }
}
