//! The definition, in f64: score, softmax, mix.

use super::rows::{Call, LARGEST_SCORE};
use crate::{Error, Inputs, Operand, Output, Problem, Scalar};

/// Everything about one query row, in f64.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// The output, `[value_dim]`.
    pub o: Vec<f64>,
    /// Natural logarithm of the sum of exp(score) over the allowed keys; -inf without any.
    pub lse: f64,
    /// Final scores, `[kv_len]`, -inf where excluded.
    pub scores: Vec<f64>,
    /// Softmax of the scores, `[kv_len]`, 0 where excluded.
    pub weights: Vec<f64>,
}

/// softmax(scale * q k^T + bias) v by its definition, computed in f64 and rounded once.
///
/// "Attention Is All You Need" (Vaswani et al., 2017), equation 1, with the options of
/// [`Problem`]. A row without any allowed key is 0, its LSE -inf.
///
/// # Errors
/// What [`Problem::validate`] finds, and [`Error::Length`], [`Error::Missing`] or
/// [`Error::Unexpected`] for slices that do not fit the problem.
///
/// ```
/// use wgpu_attention::{Inputs, Problem, Shape, cpu};
/// # fn main() -> Result<(), wgpu_attention::Error> {
/// // Two tokens of two dimensions. The query of the first points at the key of the second.
/// let problem = Problem::new(Shape::self_attention(1, 1, 2, 2)).weights();
/// let (q, k) = ([0.0, 9.0, 9.0, 0.0], [1.0, 0.0, 0.0, 1.0]);
/// let output = cpu::attention(&problem, Inputs::new(&q, &k, &[1.0, 2.0, 3.0, 4.0]))?;
/// assert!(output.weights.unwrap()[1] > 0.99);
/// # Ok(()) }
/// ```
pub fn attention<T: Scalar, C: Scalar>(
    problem: &Problem,
    inputs: Inputs<'_, T, C>,
) -> Result<Output<T>, Error> {
    let call = Call::new(problem, inputs)?;
    let mut output = Output::zeros(problem);
    let [o, lse, scores, weights] =
        [Operand::O, Operand::Lse, Operand::Scores, Operand::Weights].map(|x| problem.layout_of(x));
    let narrow = |to: &mut Option<Vec<f32>>, first: usize, from: &[f64]| {
        if let Some(to) = to {
            let to = to.iter_mut().skip(first);
            to.zip(from).for_each(|(to, from)| *to = *from as f32);
        }
    };
    call.each_row(
        |at| compute(&call, at),
        |at, row| {
            let first = o.start(at);
            for (to, from) in output.o[first..].iter_mut().zip(&row.o) {
                *to = T::from_f64(*from);
            }
            narrow(&mut output.lse, lse.start(at), &[row.lse]);
            narrow(&mut output.scores, scores.start(at), &row.scores);
            narrow(&mut output.weights, weights.start(at), &row.weights);
        },
    );
    Ok(output)
}

/// One query row of [`attention`], unrounded: to check a few rows of a large call.
///
/// # Errors
/// As [`attention`]; [`Error::Size`] if there is no such row.
pub fn row<T: Scalar, C: Scalar>(
    problem: &Problem,
    inputs: Inputs<'_, T, C>,
    [batch, head, query]: [u32; 3],
) -> Result<Row, Error> {
    let call = Call::new(problem, inputs)?;
    let shape = problem.shape;
    let axes = [
        ("batch", batch, shape.batch),
        ("head", head, shape.q_heads),
        ("query", query, shape.q_len),
    ];
    for (what, got, size) in axes {
        if got >= size {
            return Err(Error::Size { what, need: "an index below the shape's", got: got.into() });
        }
    }
    Ok(compute(&call, [batch, head, query]))
}

fn compute<T: Scalar, C: Scalar>(call: &Call<'_, T, C>, at: [u32; 3]) -> Row {
    let scores = scores(call, at);
    let (weights, lse) = softmax(&scores, call.sink(at));
    let o = values(call, at, &scores, &weights);
    let scores = scores.into_iter().map(|s| s.unwrap_or(f64::NEG_INFINITY)).collect();
    Row { o, lse, scores, weights }
}

/// s_ij = softcap(scale q_i . k_j) - slope |i + shift - j| + bias, `None` where excluded, `[kv_len]`.
/// A finite one is kept within what f32 holds.
fn scores<T: Scalar, C: Scalar>(call: &Call<'_, T, C>, at: [u32; 3]) -> Vec<Option<f64>> {
    let (scale, cap) = (call.problem.scale_f64(), f64::from(call.problem.softcap_value()));
    let q: Vec<f64> = call.q(at).iter().map(|&x| scale * x.to_f64()).collect();
    let sight = call.sight(at);
    let score = |j: u32| {
        let bias = call.bias(at, j).filter(|_| sight.keys.contains(&j))?;
        let mut s: f64 = q.iter().zip(call.k(at, j)).map(|(q, k)| q * k.to_f64()).sum();
        if cap > 0.0 {
            s = cap * (s / cap).clamp(-15.0, 15.0).tanh();
        }
        s += call.alibi(at, &sight, j);
        s += f64::from(bias);
        let most = f64::from(LARGEST_SCORE);
        Some(if s.is_finite() { s.clamp(-most, most) } else { s })
    };
    (0..call.problem.shape.kv_len).map(score).collect()
}

/// p_ij = exp(s_ij - m) / l over the allowed keys, and ln(l) + m. A sink joins l, not the LSE.
fn softmax(scores: &[Option<f64>], sink: Option<f32>) -> (Vec<f64>, f64) {
    let sink = sink.map_or(f64::NEG_INFINITY, f64::from);
    let most = scores.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let m = most.max(sink);
    let mut p: Vec<f64> = scores.iter().map(|s| s.map_or(0.0, |s| (s - m).exp())).collect();
    if scores.iter().all(Option::is_none) {
        return (p, f64::NEG_INFINITY);
    }
    let l: f64 = p.iter().sum::<f64>() + (sink - m).exp();
    p.iter_mut().for_each(|p| *p /= l);
    let alone: f64 = scores.iter().flatten().map(|s| (s - most).exp()).sum();
    (p, most + alone.ln())
}

/// o_i = sum over the allowed keys of p_ij v_j.
fn values<T: Scalar, C: Scalar>(
    call: &Call<'_, T, C>,
    at: [u32; 3],
    scores: &[Option<f64>],
    weights: &[f64],
) -> Vec<f64> {
    let mut o = vec![0.0; call.problem.shape.value_dim as usize];
    for (j, p) in (0u32..).zip(weights) {
        // An excluded key adds nothing, not even 0 * NaN.
        if scores[j as usize].is_some() {
            for (o, v) in o.iter_mut().zip(call.v(at, j)) {
                *o += p * v.to_f64();
            }
        }
    }
    o
}
