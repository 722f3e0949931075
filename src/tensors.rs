//! Host slices in, host vectors out: the signature that the CPU reference and the GPU share.

mod extras;
mod merge;
mod scalar;

pub use extras::Extras;
use extras::builders;
pub use merge::MergeInputs;
pub use scalar::Scalar;

use crate::{Error, MultiHead, Operand, Problem, Projection};

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
    /// Bias, mask, lengths and what else the problem has.
    pub extras: Extras<'a>,
}

impl<'a, T, C> Inputs<'a, T, C> {
    /// Q, K and V, nothing else.
    pub const fn new(q: &'a [T], k: &'a [C], v: &'a [C]) -> Self {
        Inputs { q, k, v, extras: Extras::NONE }
    }

    builders!(extras.);

    pub(crate) fn check(&self, problem: &Problem) -> Result<(), Error> {
        if problem.cache().is_some() {
            return Err(Error::Unexpected { operand: Operand::Cache });
        }
        let given = [
            (Operand::Q, Some(self.q.len())),
            (Operand::K, Some(self.k.len())),
            (Operand::V, Some(self.v.len())),
        ];
        let needed = [Operand::Q, Operand::K, Operand::V];
        check_lengths(&given, &needed, |operand| {
            (problem.slice_elements(operand), problem.has_own_layout(operand))
        })?;
        self.extras.check(problem)
    }
}

/// A slice must have the length its layout uses; more is accepted only where the caller gave a
/// layout, since the slice then may be part of something larger. `length` gives both.
fn check_lengths(
    given: &[(Operand, Option<usize>)],
    needed: &[Operand],
    length: impl Fn(Operand) -> (u64, bool),
) -> Result<(), Error> {
    for &(operand, got) in given {
        let (need, may_be_longer) = length(operand);
        match got.map(|got| got as u64) {
            None if needed.contains(&operand) => return Err(Error::Missing { operand }),
            Some(_) if !needed.contains(&operand) => return Err(Error::Unexpected { operand }),
            Some(got) if got < need || (got > need && !may_be_longer) => {
                return Err(Error::Length { operand, need, got });
            }
            _ => {}
        }
    }
    Ok(())
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
        let parts = [&mut self.lse, &mut self.scores, &mut self.weights];
        bytes_of(operand, bytemuck::cast_slice_mut(&mut self.o), parts)
    }
}

fn size(problem: &Problem, operand: Operand) -> usize {
    problem.elements(operand) as usize
}

/// The tensors of a [`Projection`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ProjectionInputs<'a> {
    /// Tokens, `[tokens, input]`.
    pub x: &'a [f32],
    /// Weights, `[input, output]`.
    pub w: &'a [f32],
    /// Bias, `[output]`.
    pub b: Option<&'a [f32]>,
    /// Added to the result, `[tokens, output]`.
    pub residual: Option<&'a [f32]>,
}

impl<'a> ProjectionInputs<'a> {
    /// X and W, nothing else.
    pub const fn new(x: &'a [f32], w: &'a [f32]) -> Self {
        ProjectionInputs { x, w, b: None, residual: None }
    }

    /// The same with a bias.
    #[must_use]
    pub const fn bias(self, b: &'a [f32]) -> Self {
        ProjectionInputs { b: Some(b), ..self }
    }

    /// The same with a residual.
    #[must_use]
    pub const fn residual(self, residual: &'a [f32]) -> Self {
        ProjectionInputs { residual: Some(residual), ..self }
    }

    /// Operands and slices.
    pub(crate) fn given(&self) -> [(Operand, Option<&'a [f32]>); 4] {
        [
            (Operand::X, Some(self.x)),
            (Operand::W, Some(self.w)),
            (Operand::B, self.b),
            (Operand::Residual, self.residual),
        ]
    }

    pub(crate) fn check(&self, projection: &Projection) -> Result<(), Error> {
        let given = self.given().map(|(operand, slice)| (operand, slice.map(<[f32]>::len)));
        check_lengths(&given, &projection.operands(), |operand| {
            (projection.elements(operand), projection.has_own_rows(operand))
        })
    }
}

/// The tensors of a [`MultiHead`] layer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LayerInputs<'a> {
    /// Tokens, `[batch, q_len, d_model]`.
    pub x: &'a [f32],
    /// Tokens that keys and values come from in cross-attention, `[batch, kv_len, context_dim]`.
    pub context: Option<&'a [f32]>,
    /// W_Q `[d_model, q_heads * head_dim]`, W_K `[context_dim, kv_heads * head_dim]`,
    /// W_V `[context_dim, kv_heads * value_dim]`, W_O `[q_heads * value_dim, d_model]`.
    pub weights: [&'a [f32]; 4],
    /// b_Q, b_K, b_V, b_O.
    pub biases: Option<[&'a [f32]; 4]>,
    /// The attention's bias, mask, lengths and what else it has.
    pub extras: Extras<'a>,
}

impl<'a> LayerInputs<'a> {
    /// x and W_Q, W_K, W_V, W_O, nothing else.
    pub const fn new(x: &'a [f32], weights: [&'a [f32]; 4]) -> Self {
        LayerInputs { x, context: None, weights, biases: None, extras: Extras::NONE }
    }

    /// The same with a context.
    #[must_use]
    pub const fn context(self, context: &'a [f32]) -> Self {
        LayerInputs { context: Some(context), ..self }
    }

    /// The same with b_Q, b_K, b_V, b_O.
    #[must_use]
    pub const fn biases(self, biases: [&'a [f32]; 4]) -> Self {
        LayerInputs { biases: Some(biases), ..self }
    }

    builders!(extras.);

    /// Operands and slices, without the extras.
    pub(crate) fn given(&self) -> Vec<(Operand, Option<&'a [f32]>)> {
        let weights = [Operand::Wq, Operand::Wk, Operand::Wv, Operand::Wo];
        let biases = [Operand::Bq, Operand::Bk, Operand::Bv, Operand::Bo];
        let mut given = vec![(Operand::X, Some(self.x)), (Operand::Context, self.context)];
        given.extend(weights.into_iter().zip(self.weights.map(Some)));
        given.extend((0..4).map(|at| (biases[at], self.biases.map(|b| b[at]))));
        given
    }

    pub(crate) fn check(&self, layer: &MultiHead) -> Result<(), Error> {
        let lengths =
            |(operand, slice): (Operand, Option<&[f32]>)| (operand, slice.map(<[f32]>::len));
        let given: Vec<_> = self.given().into_iter().map(lengths).collect();
        check_lengths(&given, &layer.operands(), |operand| (layer.elements(operand), false))?;
        self.extras.check(layer.problem())
    }
}

/// What a [`MultiHead`] layer computed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LayerOutput {
    /// `[batch, q_len, d_model]`.
    pub y: Vec<f32>,
    /// As in [`Output`].
    pub lse: Option<Vec<f32>>,
    /// As in [`Output`].
    pub scores: Option<Vec<f32>>,
    /// As in [`Output`].
    pub weights: Option<Vec<f32>>,
}

impl LayerOutput {
    /// Zeros, in the sizes and with the parts the layer asks for.
    #[cfg(feature = "host")]
    pub(crate) fn zeros(layer: &MultiHead) -> LayerOutput {
        let of = |operand| vec![0.0; layer.elements(operand) as usize];
        let outputs = layer.problem().outputs();
        LayerOutput {
            y: of(Operand::Y),
            lse: outputs.lse.then(|| of(Operand::Lse)),
            scores: outputs.scores.then(|| of(Operand::Scores)),
            weights: outputs.weights.then(|| of(Operand::Weights)),
        }
    }

    /// The bytes of one part.
    #[cfg(feature = "host")]
    pub(crate) fn bytes_mut(&mut self, operand: Operand) -> Option<&mut [u8]> {
        let parts = [&mut self.lse, &mut self.scores, &mut self.weights];
        bytes_of(operand, bytemuck::cast_slice_mut(&mut self.y), parts)
    }
}

#[cfg(feature = "host")]
fn bytes_of<'a>(
    operand: Operand,
    main: &'a mut [u8],
    [lse, scores, weights]: [&'a mut Option<Vec<f32>>; 3],
) -> Option<&'a mut [u8]> {
    let part = match operand {
        Operand::O | Operand::Y => return Some(main),
        Operand::Lse => lse,
        Operand::Scores => scores,
        Operand::Weights => weights,
        _ => return None,
    };
    part.as_mut().map(|part| bytemuck::cast_slice_mut(part))
}
