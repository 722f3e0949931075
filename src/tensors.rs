//! Host slices in, host vectors out: the signature that the CPU reference and the GPU share.

use crate::{Error, Operand, Problem};

/// A number as it is stored in host memory.
///
/// Sealed: a storage type needs kernels.
pub trait Scalar: bytemuck::Pod + Send + Sync + private::Sealed {
    /// The exact value.
    fn to_f64(self) -> f64;
    /// The nearest value of this type.
    fn from_f64(x: f64) -> Self;
}

mod private {
    pub trait Sealed {}
    impl Sealed for f32 {}
}

impl Scalar for f32 {
    fn to_f64(self) -> f64 {
        self.into()
    }
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
}

/// The tensors of one call, laid out as the problem says.
///
/// `T` is the storage type of Q and O, `C` that of K and V.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Inputs<'a, T = f32, C = T> {
    /// Queries, `[batch, q_heads, q_len, head_dim]`.
    pub q: &'a [T],
    /// Keys, `[batch, kv_heads, kv_len, head_dim]`.
    pub k: &'a [C],
    /// Values, `[batch, kv_heads, kv_len, value_dim]`.
    pub v: &'a [C],
    /// Additive bias, broadcast to `[batch, q_heads, q_len, kv_len]`.
    pub bias: Option<&'a [f32]>,
}

impl<'a, T, C> Inputs<'a, T, C> {
    /// Q, K and V, nothing else.
    pub const fn new(q: &'a [T], k: &'a [C], v: &'a [C]) -> Self {
        Inputs { q, k, v, bias: None }
    }

    /// The same with an additive bias.
    #[must_use]
    pub const fn bias(self, bias: &'a [f32]) -> Self {
        Inputs { bias: Some(bias), ..self }
    }

    /// A slice must have the length its layout uses; more is accepted only where the caller gave
    /// a layout, since it then may be part of something larger.
    pub(crate) fn check(&self, problem: &Problem) -> Result<(), Error> {
        let given = [
            (Operand::Q, Some(self.q.len())),
            (Operand::K, Some(self.k.len())),
            (Operand::V, Some(self.v.len())),
            (Operand::Bias, self.bias.map(<[f32]>::len)),
        ];
        for (operand, got) in given {
            let Some(got) = got else {
                if problem.has_bias() {
                    return Err(Error::Missing { operand });
                }
                continue;
            };
            if operand == Operand::Bias && !problem.has_bias() {
                return Err(Error::Unexpected { operand });
            }
            let (need, got) = (problem.elements(operand), got as u64);
            if got < need || (got > need && !problem.has_own_layout(operand)) {
                return Err(Error::Length { operand, need, got });
            }
        }
        Ok(())
    }
}

/// What a call computed, laid out as the problem says. Elements that a layout skips are 0.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Output<T = f32> {
    /// `[batch, q_heads, q_len, value_dim]`.
    pub o: Vec<T>,
    /// Natural logarithm of each row's sum of exp(score), `[batch, q_heads, q_len]`; -inf for a
    /// row without keys.
    pub lse: Option<Vec<f32>>,
    /// `[batch, q_heads, q_len, kv_len]`, -inf where excluded.
    pub scores: Option<Vec<f32>>,
    /// `[batch, q_heads, q_len, kv_len]`, 0 where excluded.
    pub weights: Option<Vec<f32>>,
}

impl<T: Scalar> Output<T> {
    /// Zeros, in the sizes and with the parts the problem asks for.
    pub(crate) fn zeros(problem: &Problem) -> Output<T> {
        let of = |wanted: bool, operand| wanted.then(|| vec![0.0; size(problem, operand)]);
        let outputs = problem.outputs();
        Output {
            o: vec![T::zeroed(); size(problem, Operand::O)],
            lse: of(outputs.lse, Operand::Lse),
            scores: of(outputs.scores, Operand::Scores),
            weights: of(outputs.weights, Operand::Weights),
        }
    }

    /// The bytes of one part.
    #[cfg(feature = "host")]
    pub(crate) fn bytes_mut(&mut self, operand: Operand) -> Option<&mut [u8]> {
        let part = match operand {
            Operand::O => return Some(bytemuck::cast_slice_mut(&mut self.o)),
            Operand::Lse => &mut self.lse,
            Operand::Scores => &mut self.scores,
            Operand::Weights => &mut self.weights,
            _ => return None,
        };
        part.as_mut().map(|part| bytemuck::cast_slice_mut(part))
    }
}

fn size(problem: &Problem, operand: Operand) -> usize {
    problem.elements(operand) as usize
}
