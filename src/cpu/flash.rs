//! The f32 twin of `flash.wgsl` and `merge.wgsl`.

use super::rows::{Call, LARGEST_SCORE, Sight};
use crate::{Error, Inputs, Operand, Output, Problem, Scalar, Tile};

/// Below every score that counts: "no key seen yet". Real scores are kept above it, and finite.
const LOWEST: f32 = f32::MIN;

/// What a sweep over some keys leaves behind: unnormalised output, maximum, sum.
struct Partial {
    o: Vec<f32>,
    m: f32,
    l: f32,
}

/// Attention as the fused kernel computes it, in f32: keys in tiles of `tile.keys`, an online
/// softmax, and, if `split_keys` is given, one partial result per so many keys, merged at the end.
///
/// "FlashAttention-2" (Dao, 2023), algorithm 1. `plan.describe()` tells the tile and the split a
/// plan uses. Scores and weights are not formed, so the outputs never contain them.
///
/// # Errors
/// As [`attention`](crate::cpu::attention), and [`Error::Size`] for a tile without keys.
pub fn flash<T: Scalar, C: Scalar>(
    problem: &Problem,
    inputs: Inputs<'_, T, C>,
    tile: Tile,
    split_keys: Option<u32>,
) -> Result<Output<T>, Error> {
    tile.validate()?;
    let call = Call::new(problem, inputs)?;
    let mut output = Output { scores: None, weights: None, ..Output::zeros(problem) };
    let [o, lse] = [Operand::O, Operand::Lse].map(|operand| problem.layout_of(operand));
    let kv_len = problem.shape.kv_len;
    let split = split_keys.unwrap_or(kv_len).max(1);
    call.each_row(
        |at| {
            let splits = (0..kv_len.max(1)).step_by(split as usize);
            let end = |first: u32| kv_len.min(first.saturating_add(split));
            merge(splits.map(|first| sweep(&call, at, tile, first..end(first))).collect())
        },
        |at, row| {
            let first = o.start(at);
            // A sink joins the sum as one more key without a value.
            let sink = call.sink(at).map_or(LOWEST, |sink| sink.clamp(LOWEST, LARGEST_SCORE));
            let m = row.m.max(sink);
            let alpha = (row.m - m).exp();
            let unit = weight_unit(call.sight(at).count);
            let sink = if call.sink(at).is_some() { unit * (sink - m).exp() } else { 0.0 };
            for (to, from) in output.o[first..].iter_mut().zip(&row.o) {
                let l = row.l * alpha + sink;
                let o = if row.l == 0.0 { 0.0 } else { doubled(from * alpha / (l + l)) };
                *to = T::from_f64(o.into());
            }
            if let Some(to) = &mut output.lse {
                let empty = row.l == 0.0;
                let l = row.l / unit;
                to[lse.start(at)] = if empty { f32::NEG_INFINITY } else { row.m + l.ln() };
            }
        },
    );
    Ok(output)
}

/// What the largest weight is before the division by l: a power of two so small that no sum of finite
/// values overflows.
fn weight_unit(keys: u32) -> f32 {
    2f32.powi(keys.leading_zeros() as i32 - 33)
}

/// 2 x, of half a weighted mean: one that roundings took past the largest number is that number. What
/// is not finite stays.
fn doubled(x: f32) -> f32 {
    let half = f32::MAX / 2.0;
    if x.is_finite() { 2.0 * x.clamp(-half, half) } else { x }
}

fn sweep<T: Scalar, C: Scalar>(
    call: &Call<'_, T, C>,
    at: [u32; 3],
    tile: Tile,
    keys: std::ops::Range<u32>,
) -> Partial {
    let shape = call.problem.shape;
    let lanes = (tile.keys / 4) as usize;
    let scale = call.problem.scale_value();
    let q: Vec<f32> = call.q(at).iter().map(|x| scale * x.to_f64() as f32).collect();
    // Tiles and splits are counted from the sequence's first key.
    let sight = call.sight(at);
    let from = sight.first;
    let unit = weight_unit(sight.count);
    let local = |token: u32| token - from;
    let (begin, end) =
        (local(sight.keys.start).max(keys.start), local(sight.keys.end).min(keys.end));
    let mut o = vec![0.0; shape.value_dim as usize];
    let mut m = LOWEST;
    // One sum for each invocation that shares the row.
    let mut l = vec![0.0f32; lanes];
    for first in (begin / tile.keys * tile.keys..end.max(begin)).step_by(tile.keys as usize) {
        // S = scale Q K^T, masked
        let s: Vec<f32> = (first..first + tile.keys)
            .map(|j| match j < begin || j >= end {
                true => LOWEST,
                false => score(call, at, &q, &sight, from + j),
            })
            .collect();
        // m' = max(m, rowmax S)
        let next = s.iter().copied().fold(m, f32::max);
        // P = unit exp(S - m')
        let p: Vec<f32> =
            s.iter().map(|&s| if s <= LOWEST { 0.0 } else { unit * (s - next).exp() }).collect();
        // l = exp(m - m') l + rowsum P
        let alpha = (m - next).exp();
        for (lane, l) in l.iter_mut().enumerate() {
            *l = *l * alpha
                + (((p[lane] + p[lane + lanes]) + p[lane + 2 * lanes]) + p[lane + 3 * lanes]);
        }
        // O = exp(m - m') O + P V
        o.iter_mut().for_each(|o| *o *= alpha);
        for (j, &p) in (first..shape.kv_len).zip(&p) {
            if p != 0.0 {
                for (o, v) in o.iter_mut().zip(call.v(at, from + j)) {
                    *o += p * v.to_f64() as f32;
                }
            }
        }
        m = next;
    }
    Partial { o, m, l: l.iter().sum() }
}

fn score<T: Scalar, C: Scalar>(
    call: &Call<'_, T, C>,
    at: [u32; 3],
    q: &[f32],
    sight: &Sight,
    j: u32,
) -> f32 {
    let Some(bias) = call.bias(at, j) else { return LOWEST };
    let mut s = 0.0f32;
    for (q, k) in q.chunks(4).zip(call.k(at, j).chunks(4)) {
        s += q.iter().zip(k).map(|(q, k)| q * k.to_f64() as f32).sum::<f32>();
    }
    let cap = call.problem.softcap_value();
    if cap > 0.0 {
        s = cap * (s / cap).clamp(-15.0, 15.0).tanh();
    }
    // In quarters: huge terms do not overflow before all are added.
    let quarter = 0.25 * s + (0.25 * call.alibi(at, sight, j)) as f32 + 0.25 * bias;
    4.0 * quarter.clamp(-0.25 * LARGEST_SCORE, 0.25 * LARGEST_SCORE)
}

/// (o, m, l) over the union of the parts' keys.
fn merge(parts: Vec<Partial>) -> Partial {
    let m = parts.iter().map(|part| part.m).fold(LOWEST, f32::max);
    let mut o = vec![0.0; parts[0].o.len()];
    let mut l = 0.0;
    for part in parts.iter().filter(|part| part.l != 0.0) {
        let weight = (part.m - m).exp();
        l += weight * part.l;
        o.iter_mut().zip(&part.o).for_each(|(o, x)| *o += weight * x);
    }
    Partial { o, m, l }
}
