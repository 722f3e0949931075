//! Random operands, and how far two results are apart.

use rand::{SeedableRng, rngs::StdRng};
use rand_distr::{Distribution, StandardNormal};
use wgpu_attention::half::{bf16, f16};
use wgpu_attention::{Element, Inputs, Operand, Problem};

/// normal(0, 1) numbers from a seed.
pub fn normal(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = StdRng::seed_from_u64(seed);
    StandardNormal.sample_iter(&mut rng).take(n).collect()
}

/// What a problem has besides Q, K, V and bias.
#[derive(Clone, Default)]
pub struct Given {
    pub mask: Option<Vec<bool>>,
    pub q_lens: Option<Vec<u32>>,
    pub kv_lens: Option<Vec<u32>>,
    /// Of queries and of keys.
    pub cu_seqlens: Option<[Vec<u32>; 2]>,
    pub slopes: Option<Vec<f32>>,
    pub sinks: Option<Vec<f32>>,
}

/// Operands of a problem, as f32 whatever type they are stored in.
#[derive(Clone)]
pub struct Data {
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
    pub bias: Option<Vec<f32>>,
    pub given: Given,
}

impl Data {
    /// Random Q, K, V and bias.
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
            given: Given::default(),
        }
    }

    /// The same, rounded to the types of queries and of keys.
    pub fn rounded(mut self, [queries, keys]: [Element; 2]) -> Data {
        for (operand, element) in [(&mut self.q, queries), (&mut self.k, keys), (&mut self.v, keys)]
        {
            operand.iter_mut().for_each(|x| *x = rounded(*x, element));
        }
        self
    }

    /// NaN in the rows of the head-major Q, K and V that lengths or bounds leave to no sequence.
    pub fn poison(&mut self, problem: &Problem) {
        let shape = problem.shape();
        let Given { q_lens, kv_lens, cu_seqlens, .. } = &self.given;
        let [cu_q, cu_kv] = [0, 1].map(|at| cu_seqlens.as_ref().map(|cu| &cu[at]));
        for (x, heads, tokens, lens, cu) in [
            (&mut self.q, shape.q_heads, shape.q_len, q_lens, cu_q),
            (&mut self.k, shape.kv_heads, shape.kv_len, kv_lens, cu_kv),
            (&mut self.v, shape.kv_heads, shape.kv_len, kv_lens, cu_kv),
        ] {
            let row = x.len() / ((shape.batch * heads * tokens).max(1)) as usize;
            for (at, x) in x.chunks_mut(row.max(1)).enumerate() {
                let (batch, token) = (at as u32 / (heads * tokens), at as u32 % tokens);
                let exist = match (lens, cu) {
                    (Some(lens), _) => lens[batch as usize],
                    (None, Some(cu)) => *cu.last().expect("bounds"),
                    (None, None) => tokens,
                };
                if token >= exist {
                    x.fill(f32::NAN);
                }
            }
        }
    }

    pub fn inputs(&self) -> Inputs<'_> {
        let mut inputs = Inputs::new(&self.q, &self.k, &self.v);
        let (extras, given) = (&mut inputs.extras, &self.given);
        extras.bias = self.bias.as_deref();
        extras.mask = given.mask.as_deref();
        extras.q_lens = given.q_lens.as_deref();
        extras.kv_lens = given.kv_lens.as_deref();
        extras.cu_seqlens_q = given.cu_seqlens.as_ref().map(|[q, _]| q.as_slice());
        extras.cu_seqlens_kv = given.cu_seqlens.as_ref().map(|[_, kv]| kv.as_slice());
        extras.slopes = given.slopes.as_deref();
        extras.sinks = given.sinks.as_deref();
        inputs
    }
}

/// The nearest number of a type.
pub fn rounded(x: f32, element: Element) -> f32 {
    match element {
        Element::F16 => f16::from_f32(x).into(),
        Element::Bf16 => bf16::from_f32(x).into(),
        _ => x,
    }
}

/// Half the distance between two numbers of a type near 1, and near 0.
pub fn rounding(element: Element) -> [f32; 2] {
    match element {
        Element::F16 => [2f32.powi(-11), 2f32.powi(-25)],
        Element::Bf16 => [2f32.powi(-8), 0.0],
        _ => [0.0, 0.0],
    }
}

/// Largest absolute difference; infinite where one is NaN or infinite and the other is not the
/// same, or where the lengths differ.
pub fn max_error(got: &[f32], want: &[f32]) -> f32 {
    max_error_of(got, want, |_| 1.0)
}

/// The same as a part of what is allowed for each right value.
pub fn max_error_of(got: &[f32], want: &[f32], allowed: impl Fn(f32) -> f32) -> f32 {
    if got.len() != want.len() {
        return f32::INFINITY;
    }
    let error = |(&got, &want): (&f32, &f32)| match got == want || (got.is_nan() && want.is_nan()) {
        true => 0.0,
        false if (got - want).is_finite() => (got - want).abs() / allowed(want),
        false => f32::INFINITY,
    };
    got.iter().zip(want).map(error).fold(0.0, f32::max)
}
