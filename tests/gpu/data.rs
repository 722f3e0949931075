//! Random operands, and how far two results are apart.

use rand::{SeedableRng, rngs::StdRng};
use rand_distr::{Distribution, StandardNormal};
use wgpu_attention::{Inputs, Operand, Problem};

/// normal(0, 1) numbers from a seed.
pub fn normal(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = StdRng::seed_from_u64(seed);
    StandardNormal.sample_iter(&mut rng).take(n).collect()
}

/// Random operands for a problem.
pub struct Data {
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
    pub bias: Option<Vec<f32>>,
}

impl Data {
    pub fn new(problem: &Problem, seed: u64) -> Data {
        let operand = |operand: Operand| {
            normal(problem.elements(operand) as usize, 8 * seed + operand as u64)
        };
        let bias = operand(Operand::Bias);
        Data {
            q: operand(Operand::Q),
            k: operand(Operand::K),
            v: operand(Operand::V),
            bias: (!bias.is_empty()).then_some(bias),
        }
    }

    pub fn inputs(&self) -> Inputs<'_> {
        let inputs = Inputs::new(&self.q, &self.k, &self.v);
        match &self.bias {
            Some(bias) => inputs.bias(bias),
            None => inputs,
        }
    }
}

/// Largest absolute difference; infinite where one is NaN or infinite and the other is not the
/// same, or where the lengths differ.
pub fn max_error(got: &[f32], want: &[f32]) -> f32 {
    if got.len() != want.len() {
        return f32::INFINITY;
    }
    let error = |(&got, &want): (&f32, &f32)| match got == want || (got.is_nan() && want.is_nan()) {
        true => 0.0,
        false if (got - want).is_finite() => (got - want).abs(),
        false => f32::INFINITY,
    };
    got.iter().zip(want).map(error).fold(0.0, f32::max)
}
