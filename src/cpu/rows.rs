//! Rows of the operands, and the walk over all query rows.

use std::ops::Range;

use crate::{BiasLayout, Error, Inputs, Layout, Operand, Problem, Scalar};

/// No score that is a number is larger.
pub(super) const LARGEST_SCORE: f32 = 3.4e38;

/// One checked call.
pub(super) struct Call<'a, T, C> {
    pub problem: &'a Problem,
    pub inputs: Inputs<'a, T, C>,
    /// Of Q, K and V.
    layouts: [Layout; 3],
    band: [i32; 3],
    bias: Option<BiasLayout>,
    mask: Option<BiasLayout>,
}

/// What a query row sees, in key tokens of the call.
pub(super) struct Sight {
    /// The first key of its sequence.
    pub first: u32,
    /// Keys that lengths and band let it see.
    pub keys: Range<u32>,
    /// All keys of its sequence.
    pub count: u32,
    /// Where it stands among them.
    position: i64,
}

impl<'a, T: Scalar, C: Scalar> Call<'a, T, C> {
    pub fn new(problem: &'a Problem, inputs: Inputs<'a, T, C>) -> Result<Self, Error> {
        problem.validate()?;
        inputs.check(problem)?;
        let layouts = [Operand::Q, Operand::K, Operand::V].map(|o| problem.layout_of(o));
        let band = problem.band_limits(problem.shape.q_len, problem.shape.kv_len)?;
        let (bias, mask) = (problem.bias_layout()?, problem.mask_layout()?);
        Ok(Call { problem, inputs, layouts, band, bias, mask })
    }

    /// Query and key tokens of the sequence that a row belongs to. A row of none has no keys.
    fn sequence(&self, [batch, _, i]: [u32; 3]) -> [Range<u32>; 2] {
        let (shape, extras) = (self.problem.shape, &self.inputs.extras);
        if let (Some(q), Some(kv)) = (extras.cu_seqlens_q, extras.cu_seqlens_kv) {
            let s = q.partition_point(|&first| first <= i) - 1;
            return match q.get(s + 1) {
                Some(&end) => [q[s]..end, kv[s]..kv[s + 1]],
                None => [q[s]..q[s], 0..0],
            };
        }
        let of = |lens: Option<&[u32]>, all| 0..lens.map_or(all, |lens| lens[batch as usize]);
        [of(extras.q_lens, shape.q_len), of(extras.kv_lens, shape.kv_len)]
    }

    /// What row `at` sees by lengths and band: p - left <= j <= p + right around p = i + shift,
    /// counted within its sequence.
    pub fn sight(&self, at: [u32; 3]) -> Sight {
        let [queries, keys] = self.sequence(at);
        let i = i64::from(at[2]) - i64::from(queries.start);
        let all = keys.end - keys.start;
        let [low, high, shift] = self.problem.band_of(self.band, queries.end - queries.start, all);
        let count = if queries.contains(&at[2]) { i64::from(all) } else { 0 };
        let end = (i + high + 1).clamp(0, count);
        let begin = (i + low).clamp(0, end);
        let token = |j: i64| keys.start + j as u32;
        let position = i64::from(keys.start) + i + shift;
        Sight { first: keys.start, keys: token(begin)..token(end), count: all, position }
    }

    /// The bits that decide on key j: its bias, and `None` if bias or mask exclude it.
    pub fn bias(&self, at: [u32; 3], j: u32) -> Option<f32> {
        let extras = &self.inputs.extras;
        if let (Some(mask), Some(layout)) = (extras.mask, self.mask) {
            if !mask[entry(layout, at, j)] {
                return None;
            }
        }
        let (Some(bias), Some(layout)) = (extras.bias, self.bias) else { return Some(0.0) };
        let bias = bias[entry(layout, at, j)];
        (bias != f32::NEG_INFINITY).then_some(bias)
    }

    /// How far key j is from the row's own position, times -slope. 0 without ALiBi.
    pub fn alibi(&self, [_, head, _]: [u32; 3], sight: &Sight, j: u32) -> f64 {
        let distance = (sight.position - i64::from(j)).abs() as f64;
        self.inputs.extras.slopes.map_or(0.0, |slopes| -f64::from(slopes[head as usize]) * distance)
    }

    /// The sink of a row's head.
    pub fn sink(&self, [_, head, _]: [u32; 3]) -> Option<f32> {
        self.inputs.extras.sinks.map(|sinks| sinks[head as usize])
    }

    /// Row i of Q, `[head_dim]`.
    pub fn q(&self, [batch, head, i]: [u32; 3]) -> &'a [T] {
        let start = self.layouts[0].start([batch, head, i]);
        &self.inputs.q[start..start + self.problem.shape.head_dim as usize]
    }

    /// Row j of K that query head `head` reads, `[head_dim]`.
    pub fn k(&self, [batch, head, _]: [u32; 3], j: u32) -> &'a [C] {
        let start = self.layouts[1].start([batch, self.kv_head(head), j]);
        &self.inputs.k[start..start + self.problem.shape.head_dim as usize]
    }

    /// Row j of V that query head `head` reads, `[value_dim]`.
    pub fn v(&self, [batch, head, _]: [u32; 3], j: u32) -> &'a [C] {
        let start = self.layouts[2].start([batch, self.kv_head(head), j]);
        &self.inputs.v[start..start + self.problem.shape.value_dim as usize]
    }

    fn kv_head(&self, head: u32) -> u32 {
        let shape = self.problem.shape;
        head / (shape.q_heads / shape.kv_heads)
    }

    /// Runs `row` for every query row and lays the results out.
    pub fn each_row<R: Send>(
        &self,
        row: impl Fn([u32; 3]) -> R + Sync + Send,
        mut store: impl FnMut([u32; 3], R),
    ) {
        let shape = self.problem.shape;
        let rows = u64::from(shape.batch) * u64::from(shape.q_heads) * u64::from(shape.q_len);
        let place = |at: u64| {
            let (rest, i) = (at / u64::from(shape.q_len), at % u64::from(shape.q_len));
            let (b, h) = (rest / u64::from(shape.q_heads), rest % u64::from(shape.q_heads));
            [b as u32, h as u32, i as u32]
        };
        each(rows, |at| row(place(at)), |at, result| store(place(at), result));
    }
}

/// Runs `work` for 0 .. n, on every core with the feature `rayon`, and `store` for each result in
/// order.
pub(super) fn each<R: Send>(
    n: u64,
    work: impl Fn(u64) -> R + Sync + Send,
    mut store: impl FnMut(u64, R),
) {
    // A bounded number at a time: a row's scores may be long.
    const BATCH: u64 = 256;
    for first in (0..n).step_by(BATCH as usize) {
        let batch = first..n.min(first + BATCH);
        #[cfg(all(feature = "rayon", not(target_family = "wasm")))]
        let done: Vec<R> = {
            use rayon::prelude::*;
            batch.clone().into_par_iter().map(&work).collect()
        };
        #[cfg(not(all(feature = "rayon", not(target_family = "wasm"))))]
        let done: Vec<R> = batch.clone().map(&work).collect();
        for (at, result) in batch.zip(done) {
            store(at, result);
        }
    }
}

/// Where the entry of query i and key j lies.
fn entry(layout: BiasLayout, [batch, head, i]: [u32; 3], j: u32) -> usize {
    let at = u64::from(layout.offset)
        + u64::from(batch) * u64::from(layout.batch)
        + u64::from(head) * u64::from(layout.head)
        + u64::from(i) * u64::from(layout.query)
        + u64::from(j) * u64::from(layout.key);
    at as usize
}
