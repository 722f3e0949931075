//! A case made ready on the device: operands there, planned and bound.

use wgpu_attention::half::f16;
use wgpu_attention::{
    Append, Bound, Buffers, Choice, Description, Element, KvCache, Method, Operand,
};

use super::answer::{self, Answer, noise, numbers};
use super::card::Card;
use super::case::Case;
use super::line::{Error, Outcome};

/// Methods by hand beside the planner's own choice; one that it chose anyway is not run twice.
pub fn methods(case: &Case, matrices: bool) -> &'static [Option<Method>] {
    match (case.is_decode(), case.element) {
        // Kernels for 16-bit operands alone belong here.
        (false, Element::F16) if matrices => &[None, Some(Method::Flash), Some(Method::Matrix)],
        (false, _) => &[None, Some(Method::Flash)],
        (true, _) => &[None],
    }
}

/// Rows that are appended to a cache at a time.
const CHUNK: u32 = 1024;

pub struct Call {
    pub bound: Bound,
    pub description: Description,
    o: wgpu::Buffer,
    element: Element,
}

impl Call {
    pub fn new(card: &Card, case: &Case, method: Option<Method>) -> Result<Call, Outcome> {
        let problem = case.problem();
        let choice = method.map_or_else(Choice::default, Choice::method);
        let plan = card.attention.plan_with(&problem, choice)?;
        let scratch = card.buffer(plan.scratch_bytes())?;
        let o = card.buffer(problem.bytes(Operand::O))?;
        let upload = |operand: Operand, number: u32| {
            let count = problem.elements(operand) as u32;
            stored(card, case.element, numbers(number, 0, count))
        };
        let q = upload(Operand::Q, answer::Q)?;
        let bound = if case.is_decode() {
            let cache = filled(card, case)?;
            plan.bind(Buffers::cached(&q, &cache, &o).with(Operand::Scratch, &scratch))?
        } else {
            let [k, v] = [upload(Operand::K, answer::K)?, upload(Operand::V, answer::V)?];
            plan.bind(Buffers::new(&q, &k, &v, &o).with(Operand::Scratch, &scratch))?
        };
        Ok(Call { bound, description: plan.describe(), o, element: case.element })
    }

    /// Runs once, and compares the rows that are known.
    pub fn check(&self, card: &Card, right: &Answer) -> Result<Error, Outcome> {
        let mut encoder = card.device.create_command_encoder(&Default::default());
        self.bound.encode_in(&mut encoder);
        card.submit(encoder)?;
        let size = u64::from(self.element.bytes());
        let places = right.places().map(|(first, count)| (first * size, u64::from(count) * size));
        let bytes = card.read(&self.o, places)?;
        let got: Vec<f32> = if self.element == Element::F16 {
            let halves: Vec<f16> = bytemuck::pod_collect_to_vec(&bytes);
            halves.into_iter().map(f16::to_f32).collect()
        } else {
            bytemuck::pod_collect_to_vec(&bytes)
        };
        Ok(right.error(&got))
    }
}

/// A buffer that holds these numbers.
fn stored(card: &Card, element: Element, numbers: Vec<f32>) -> Result<wgpu::Buffer, Outcome> {
    let buffer = card.buffer(numbers.len() as u64 * u64::from(element.bytes()))?;
    if element == Element::F16 {
        let halves: Vec<f16> = numbers.into_iter().map(f16::from_f32).collect();
        card.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&halves));
    } else {
        card.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&numbers));
    }
    Ok(buffer)
}

/// A full cache, filled by appends.
fn filled(card: &Card, case: &Case) -> Result<KvCache, Outcome> {
    let Case { batch, kv_heads, keys, dim, .. } = *case;
    let mut cache = KvCache::new(&card.attention, case.cache())?;
    let tokens = CHUNK.min(keys);
    let append = card.attention.plan_append(&Append::new(case.cache(), tokens))?;
    for first in (0..keys).step_by(tokens as usize) {
        let rows = |operand| {
            let heads = (0..batch * kv_heads).map(|head| (head * keys + first) * dim);
            let at = heads.flat_map(|from| from..from + tokens * dim);
            stored(card, Element::F32, at.map(|at| noise(operand, at)).collect())
        };
        let [k, v] = [rows(answer::K)?, rows(answer::V)?];
        let buffers = Buffers::default().with(Operand::K, &k).with(Operand::V, &v).cache(&cache);
        let bound = append.bind(buffers)?;
        cache.extend(&card.queue, &vec![tokens; batch as usize])?;
        let mut encoder = card.device.create_command_encoder(&Default::default());
        bound.encode_in(&mut encoder);
        card.submit(encoder)?;
    }
    Ok(cache)
}

/// Method and tile in a few words.
pub fn name(description: &Description) -> String {
    let tile = description.tile;
    let split = description.split_keys.map(|keys| format!(", splits of {keys}"));
    let name = format!("{:?}, {} x {}", description.method, tile.queries, tile.keys);
    name + &split.unwrap_or_default()
}
