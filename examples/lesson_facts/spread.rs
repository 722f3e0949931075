//! How far dot products of random vectors spread: sqrt(dim) before the division, 1 after it.

use std::fmt;

use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_distr::StandardNormal;
use wgpu_attention::{Error, Inputs, Operand, Problem, Shape};

use wgpu_attention_support::lesson::figures::bar;
use wgpu_attention_support::lesson::tokens::Attend;

/// A kind of random number with mean 0 and variance 1, which is all that matters.
#[derive(Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    draw: fn(&mut StdRng) -> f32,
}

pub const NORMAL: Kind = Kind { name: "normal", draw: |rng| rng.sample(StandardNormal) };
pub const KINDS: [Kind; 3] = [
    NORMAL,
    Kind { name: "uniform(-sqrt3,sqrt3)", draw: |rng| rng.random_range(-3f32.sqrt()..3f32.sqrt()) },
    Kind { name: "plus/minus 1", draw: |rng| if rng.random() { 1.0 } else { -1.0 } },
];

/// Standard deviation of q . k.
pub struct Spread {
    pub kind: Kind,
    pub shape: Shape,
    pub before: f64,
    /// With the division by sqrt(dim).
    pub after: f64,
}

impl Spread {
    /// Of the scores of random queries and keys. Products are independent where every query has a
    /// key of its own: as many sequences of one token as there are products.
    pub fn measure(kind: Kind, shape: Shape, attend: Attend<'_>) -> Result<Spread, Error> {
        let problem = Problem::new(shape).scores();
        let [q, k] = [Operand::Q, Operand::K].map(|operand| {
            let mut rng = StdRng::seed_from_u64(operand as u64);
            let count = problem.elements(operand) as usize;
            (0..count).map(|_| (kind.draw)(&mut rng)).collect::<Vec<_>>()
        });
        let v = vec![0.0; problem.elements(Operand::V) as usize];
        let spread = |problem: &Problem| {
            let scores = attend(problem, Inputs::new(&q, &k, &v))?.scores.unwrap_or_default();
            Ok(deviation(&scores))
        };
        let before = spread(&problem.clone().scale(1.0))?;
        Ok(Spread { kind, shape, before, after: spread(&problem)? })
    }
}

/// Standard deviation.
fn deviation(numbers: &[f32]) -> f64 {
    let mean = |of: &dyn Fn(f64) -> f64| {
        numbers.iter().map(|&x| of(f64::from(x))).sum::<f64>() / numbers.len() as f64
    };
    let middle = mean(&|x| x);
    mean(&|x| (x - middle).powi(2)).sqrt()
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dim, name) = (self.shape.head_dim, self.kind.name);
        let (sqrt, bar) = (f64::from(dim).sqrt(), bar(self.before as f32 / 20.0, 20));
        write!(f, "{dim:>5}  {name:21}  {sqrt:>9.2}",)?;
        write!(f, "  {:>6.2}  {:>7.3}  {bar}", self.before, self.after)
    }
}
