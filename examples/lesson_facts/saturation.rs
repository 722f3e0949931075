//! What the softmax makes of large scores: weights close to one-hot, and no gradient for most.

use std::fmt;

use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_distr::StandardNormal;
use wgpu_attention::{Error, Inputs, Operand, Problem, Shape};

use wgpu_attention_support::lesson::entropy::entropy;
use wgpu_attention_support::lesson::figures::percent;
use wgpu_attention_support::lesson::tokens::Attend;

/// Of many queries, each with keys of its own.
pub struct Saturation {
    pub keys: u32,
    pub scaled: Softness,
    pub unscaled: Softness,
}

/// How soft the weights are, and how much they answer to the scores.
pub struct Softness {
    keys: u32,
    /// Mean over queries.
    pub max_weight: f64,
    /// Mean over queries, in nats.
    pub entropy: f64,
    /// How much all weights of a query move with all scores: [`gradient`] of each query, rising.
    pub norms: Vec<f64>,
    /// How much a key's weight moves with its own score: p (1 - p) of each key of each query,
    /// rising.
    pub own: Vec<f64>,
}

impl Saturation {
    /// normal(0, 1) queries and keys of 64 dims.
    pub fn measure(queries: u32, keys: u32, attend: Attend<'_>) -> Result<Saturation, Error> {
        let shape = Shape::self_attention(queries, 1, 1, 64).kv_len(keys).value_dim(1);
        let problem = Problem::new(shape).weights();
        let [q, k, v] = [Operand::Q, Operand::K, Operand::V].map(|operand| {
            let rng = StdRng::seed_from_u64(u64::from(keys) + operand as u64);
            let count = problem.elements(operand) as usize;
            rng.sample_iter(StandardNormal).take(count).collect::<Vec<f32>>()
        });
        let soft = |problem: &Problem| {
            let weights = attend(problem, Inputs::new(&q, &k, &v))?.weights.unwrap_or_default();
            Ok(Softness::of(keys, weights.chunks_exact(keys as usize)))
        };
        let unscaled = soft(&problem.clone().scale(1.0))?;
        Ok(Saturation { keys, scaled: soft(&problem)?, unscaled })
    }
}

impl Softness {
    fn of<'a>(keys: u32, rows: impl ExactSizeIterator<Item = &'a [f32]> + Clone) -> Softness {
        let mean =
            |of: &dyn Fn(&[f32]) -> f64| rows.clone().map(of).sum::<f64>() / rows.len() as f64;
        let max = |row: &[f32]| f64::from(row.iter().fold(0.0, |most: f32, &p| most.max(p)));
        let own = |&p: &f32| f64::from(p) * (1.0 - f64::from(p));
        Softness {
            keys,
            max_weight: mean(&max),
            entropy: mean(&entropy),
            norms: sorted(rows.clone().map(gradient)),
            own: sorted(rows.flatten().map(own)),
        }
    }
}

fn sorted(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// The number that this share of them is below.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[(share * sorted.len() as f64) as usize]
}

impl fmt::Display for Softness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most, uniform) = (percent(self.max_weight as f32), f64::from(self.keys).ln());
        write!(f, "{most:>14}  {:>4.2} of {uniform:>4.2}", self.entropy)?;
        let [half, tenth] = [0.5, 0.1].map(|share| quantile(&self.norms, share));
        write!(f, "  {half:.4}  {tenth:>7.4}  {:>7.0e}", quantile(&self.own, 0.5))
    }
}

/// How much a query's weights move when its scores do: the Frobenius norm of the softmax's
/// Jacobian, dp_i / ds_j = p_i (delta_ij - p_j).
pub fn gradient(weights: &[f32]) -> f64 {
    let entry = |i: usize, j: usize| {
        let [a, b] = [weights[i], weights[j]].map(f64::from);
        a * (f64::from(u8::from(i == j)) - b)
    };
    let row = |i| (0..weights.len()).map(move |j| entry(i, j).powi(2)).sum::<f64>();
    (0..weights.len()).map(row).sum::<f64>().sqrt()
}

impl fmt::Display for Saturation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys;
        writeln!(f, "{keys:>6}  undivided  {}", self.unscaled)?;
        write!(f, "{:>6}  divided    {}", "", self.scaled)
    }
}
