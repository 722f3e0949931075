//! Rows of the operands, and the walk over all query rows.

use crate::problem::Layout;
use crate::{Error, Inputs, Operand, Problem, Scalar};

/// One checked call.
pub(super) struct Call<'a, T, C> {
    pub problem: &'a Problem,
    pub inputs: Inputs<'a, T, C>,
    /// (low, high): query i may see the keys i + low ..= i + high.
    band: (i64, i64),
    layouts: [Layout; 3],
}

impl<'a, T: Scalar, C: Scalar> Call<'a, T, C> {
    pub fn new(problem: &'a Problem, inputs: Inputs<'a, T, C>) -> Result<Self, Error> {
        problem.validate()?;
        inputs.check(problem)?;
        let shape = problem.shape;
        let (low, high) = problem.band_limits(shape.q_len, shape.kv_len)?;
        let layouts = [Operand::Q, Operand::K, Operand::V].map(|o| problem.layout_of(o));
        Ok(Call { problem, inputs, band: (low.into(), high.into()), layouts })
    }

    /// Row i of Q, `[head_dim]`.
    pub fn q(&self, [batch, head, i]: [u32; 3]) -> &'a [T] {
        let start = start(self.layouts[0], [batch, head, i]);
        &self.inputs.q[start..start + self.problem.shape.head_dim as usize]
    }

    /// Row j of K that query head `head` reads, `[head_dim]`.
    pub fn k(&self, [batch, head, _]: [u32; 3], j: u32) -> &'a [C] {
        let start = start(self.layouts[1], [batch, self.kv_head(head), j]);
        &self.inputs.k[start..start + self.problem.shape.head_dim as usize]
    }

    /// Row j of V that query head `head` reads, `[value_dim]`.
    pub fn v(&self, [batch, head, _]: [u32; 3], j: u32) -> &'a [C] {
        let start = start(self.layouts[2], [batch, self.kv_head(head), j]);
        &self.inputs.v[start..start + self.problem.shape.value_dim as usize]
    }

    /// The bias of query i and key j, `None` if it excludes the key. 0 without a bias.
    pub fn bias(&self, [batch, head, i]: [u32; 3], j: u32) -> Option<f32> {
        let (Some(bias), Ok(Some(at))) = (self.inputs.bias, self.problem.bias_layout()) else {
            return Some(0.0);
        };
        let index = u64::from(at.offset)
            + u64::from(batch) * u64::from(at.batch)
            + u64::from(head) * u64::from(at.head)
            + u64::from(i) * u64::from(at.query)
            + u64::from(j) * u64::from(at.key);
        let bias = bias[index as usize];
        (bias != f32::NEG_INFINITY).then_some(bias)
    }

    /// The keys that the band lets query i see, as a range of j.
    pub fn visible(&self, i: u32) -> std::ops::Range<u32> {
        let i = i64::from(i);
        let end = (i + self.band.1 + 1).clamp(0, self.problem.shape.kv_len.into());
        let begin = (i + self.band.0).clamp(0, end);
        begin as u32..end as u32
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

/// The first element of row `at` of an operand.
pub(super) fn start(layout: Layout, [batch, head, token]: [u32; 3]) -> usize {
    let at = u64::from(layout.offset)
        + u64::from(batch) * u64::from(layout.batch)
        + u64::from(head) * u64::from(layout.head)
        + u64::from(token) * u64::from(layout.token);
    at as usize
}
