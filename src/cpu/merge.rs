//! The merge of partial results, in f64.

use super::rows::each;
use crate::{Error, Merge, MergeInputs, Operand, Output, Scalar};

/// (O, LSE) over the union of the parts' keys, in f64 and rounded once: what their memory holds
/// after the merge. Elements that layouts skip are 0, or what the memory held before; in place,
/// both are all parts, with the result over part 0.
///
/// # Errors
/// What [`Merge::validate`] finds; [`Error::Length`], [`Error::Missing`] or [`Error::Unexpected`]
/// for slices that do not fit; [`Error::Value`] for a sink that is not below infinity.
pub fn merge<T: Scalar>(merge: &Merge, inputs: MergeInputs<'_, T>) -> Result<Output<T>, Error> {
    merge.validate()?;
    inputs.check(merge)?;
    let (shape, home) = (merge.shape(), merge.home());
    let [o_at, lse_at] = home.map(|operand| merge.layout_of(operand));
    let size = |at: usize| merge.elements(home[at]) as usize;
    let mut o = inputs.o.map_or(vec![T::zeroed(); size(0)], <[T]>::to_vec);
    let mut lse = inputs.lse.map_or(vec![0.0; size(1)], <[f32]>::to_vec);
    if merge.is_in_place() {
        (o, lse) = (inputs.parts.to_vec(), inputs.parts_lse.to_vec());
    }
    let place = |at: u64| {
        let (head, token) = (at / u64::from(shape.q_len), at % u64::from(shape.q_len));
        let (batch, head) = (head / u64::from(shape.q_heads), head % u64::from(shape.q_heads));
        [batch as u32, head as u32, token as u32]
    };
    each(
        merge.rows() as u64,
        |at| {
            let at = place(at);
            let sink = inputs.sinks.map_or(f64::NEG_INFINITY, |sinks| sinks[at[1] as usize].into());
            row(&states(merge, &inputs, at), sink, shape.value_dim as usize)
        },
        |at, (row, row_lse)| {
            let to = o[o_at.start(place(at))..].iter_mut();
            to.zip(row).for_each(|(to, from)| *to = T::from_f64(from));
            lse[lse_at.start(place(at))] = row_lse as f32;
        },
    );
    Ok(Output { o, lse: Some(lse), scores: None, weights: None })
}

/// (LSE, O) of every part of a row, and last of what O and LSE hold, if that counts.
fn states<'a, T: Scalar>(
    merge: &Merge,
    inputs: &MergeInputs<'a, T>,
    at: [u32; 3],
) -> Vec<(f64, &'a [T])> {
    let start = |operand: Operand, part: u32| {
        let stride = u64::from(merge.stride_of(operand));
        merge.layout_of(operand).start(at) + (u64::from(part) * stride) as usize
    };
    let part = |part: u32| {
        let lse = inputs.parts_lse[start(Operand::PartsLse, part)];
        (f64::from(lse), &inputs.parts[start(Operand::Parts, part)..])
    };
    let held = inputs
        .o
        .zip(inputs.lse)
        .map(|(o, lse)| (f64::from(lse[start(Operand::Lse, 0)]), &o[start(Operand::O, 0)..]));
    (0..merge.parts()).map(part).chain(held).collect()
}

/// o = sum of exp(LSE_n - m) / l o_n, and LSE = m + ln(l), where m = max LSE_n and l = sum of
/// exp(LSE_n - m). A sink joins l after the LSE.
fn row<T: Scalar>(states: &[(f64, &[T])], sink: f64, value_dim: usize) -> (Vec<f64>, f64) {
    let mut o = vec![0.0; value_dim];
    // An empty part adds nothing, not even 0 * NaN.
    let seen = || states.iter().filter(|state| state.0 != f64::NEG_INFINITY);
    if seen().next().is_none() {
        return (o, f64::NEG_INFINITY);
    }
    let m = seen().map(|state| state.0).fold(f64::NEG_INFINITY, f64::max);
    let l: f64 = seen().map(|state| (state.0 - m).exp()).sum();
    let most = m.max(sink);
    let denominator = l * (m - most).exp() + (sink - most).exp();
    for (lse, part) in seen() {
        let weight = (lse - most).exp() / denominator;
        o.iter_mut().zip(*part).for_each(|(o, x)| *o += weight * x.to_f64());
    }
    (o, m + l.ln())
}
