//! What attention makes of a case, with every storage type there is.

use half::{bf16, f16};
use safetensors::Dtype;
use wgpu_attention::{Inputs, Output, Scalar};

use super::backend::Backend;
use super::case::{Case, Order, told};
use super::tensor::Tensor;

/// More results than this are no attention on a file but a mistake, or worse.
const MOST_BYTES: u128 = 2 << 30;

const FLOATS: &str = "F32, F16 or BF16";

/// A result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    Out,
    Lse,
    Weights,
    Scores,
}

/// A result with its numbers.
pub struct Made {
    pub part: Part,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Part {
    pub const ALL: [Part; 4] = [Part::Out, Part::Lse, Part::Weights, Part::Scores];

    pub const fn name(self) -> &'static str {
        match self {
            Part::Out => "out",
            Part::Lse => "lse",
            Part::Weights => "weights",
            Part::Scores => "scores",
        }
    }
}

impl Made {
    pub fn tensor(&self) -> Tensor<'_> {
        let Made { part, dtype, shape, bytes } = self;
        Tensor { name: part.name(), dtype: *dtype, shape, data: bytes }
    }
}

impl Case<'_> {
    /// The axes of a result as they lie in a file.
    pub fn shape(&self, part: Part) -> Vec<usize> {
        let [batch, heads, tokens, dim] = self.head_major();
        match (part, self.order) {
            (Part::Out, Order::Bhnd) => vec![batch, heads, tokens, dim],
            (Part::Out, Order::Bnhd) => vec![batch, tokens, heads, dim],
            (Part::Lse, _) => vec![batch, heads, tokens],
            _ => vec![batch, heads, tokens, self.problem.shape().kv_len as usize],
        }
    }

    /// O always, and what else is wanted.
    pub fn attend(&self, backend: &Backend, wanted: &[Part]) -> Result<Vec<Made>, String> {
        for part in wanted.iter().copied().chain([Part::Out]) {
            let numbers =
                self.shape(part).iter().fold(4u128, |all, &n| all.saturating_mul(n as u128));
            if numbers > MOST_BYTES {
                let name = part.name();
                return Err(format!("{name}: need at most {MOST_BYTES} bytes, got {numbers}"));
            }
        }
        match self.q.dtype {
            Dtype::F32 => self.with_queries::<f32>(backend, wanted),
            Dtype::F16 => self.with_queries::<f16>(backend, wanted),
            Dtype::BF16 => self.with_queries::<bf16>(backend, wanted),
            _ => Err(self.q.other_type(FLOATS)),
        }
    }

    fn with_queries<T: Scalar>(
        &self,
        backend: &Backend,
        wanted: &[Part],
    ) -> Result<Vec<Made>, String> {
        match self.k.dtype {
            Dtype::F32 => self.with_keys::<T, f32>(backend, wanted),
            Dtype::F16 => self.with_keys::<T, f16>(backend, wanted),
            Dtype::BF16 => self.with_keys::<T, bf16>(backend, wanted),
            _ => Err(self.k.other_type(FLOATS)),
        }
    }

    fn with_keys<T: Scalar, C: Scalar>(
        &self,
        backend: &Backend,
        wanted: &[Part],
    ) -> Result<Vec<Made>, String> {
        let problem = wanted.iter().fold(self.problem.clone(), |problem, part| match part {
            Part::Out => problem,
            Part::Lse => problem.lse(),
            Part::Weights => problem.weights(),
            Part::Scores => problem.scores(),
        });
        let (q, k, v) = (self.q.stored::<T>(), self.k.stored::<C>(), self.v.stored::<C>());
        let mut inputs = Inputs::new(&q, &k, &v);
        let (extras, optional) = (&mut inputs.extras, &self.optional);
        extras.bias = optional.bias.as_deref();
        extras.mask = optional.mask.as_deref();
        extras.q_lens = optional.q_lens.as_deref();
        extras.kv_lens = optional.kv_lens.as_deref();
        extras.cu_seqlens_q = optional.cu_seqlens_q.as_deref();
        extras.cu_seqlens_kv = optional.cu_seqlens_kv.as_deref();
        extras.slopes = optional.slopes.as_deref();
        extras.sinks = optional.sinks.as_deref();
        let output = backend.attend(&problem, inputs).map_err(|error| told(&error))?;
        Ok(wanted.iter().filter_map(|&part| self.made(part, &output)).collect())
    }

    fn made<T: Scalar>(&self, part: Part, output: &Output<T>) -> Option<Made> {
        let numbers = match part {
            Part::Out => None,
            Part::Lse => Some(output.lse.as_deref()?),
            Part::Weights => Some(output.weights.as_deref()?),
            Part::Scores => Some(output.scores.as_deref()?),
        };
        let (dtype, bytes) = match numbers {
            None => (self.q.dtype, bytemuck::cast_slice(&output.o).to_vec()),
            Some(numbers) => (Dtype::F32, bytemuck::cast_slice(numbers).to_vec()),
        };
        Some(Made { part, dtype, shape: self.shape(part), bytes })
    }
}
