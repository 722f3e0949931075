//! What is computed, and whether an answer is right.

use rand::SeedableRng;
use rand_distr::Distribution;
use wgpu_attention::{Align, Inputs, Problem, Shape, cpu};

/// The largest absolute error allowed, for operands from the standard normal distribution.
pub const TOLERANCE: f64 = 1e-5;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// As many queries as keys, all from one sequence.
    Prefill { causal: bool },
    /// A few queries, each of which sees every key of a cache.
    Decode,
}

/// Operands of one comparison: every head has keys of its own.
pub struct Case {
    pub kind: Kind,
    pub heads: u32,
    pub rows: u32,
    pub keys: u32,
    pub dim: u32,
    /// `[head, row, dim]`
    pub q: Vec<f32>,
    /// `[head, key, dim]`
    pub k: Vec<f32>,
    /// `[head, key, dim]`
    pub v: Vec<f32>,
}

impl Case {
    pub fn new(kind: Kind, heads: u32, [rows, keys]: [u32; 2], dim: u32) -> Case {
        let mut random = rand::rngs::StdRng::seed_from_u64(3);
        let mut normal = |tokens: u32| -> Vec<f32> {
            let n = heads as usize * tokens as usize * dim as usize;
            rand_distr::StandardNormal.sample_iter(&mut random).take(n).collect()
        };
        let (q, k, v) = (normal(rows), normal(keys), normal(keys));
        Case { kind, heads, rows, keys, dim, q, k, v }
    }

    pub fn causal(&self) -> bool {
        self.kind == Kind::Prefill { causal: true }
    }

    pub fn problem(&self) -> Problem {
        let shape = Shape::self_attention(1, self.heads, self.rows, self.dim).kv_len(self.keys);
        let problem = Problem::new(shape);
        if self.causal() { problem.causal().align(Align::TopLeft) } else { problem }
    }

    /// 0 where a query sees the key, -inf where not, `[row, key]`. `None` if all see all.
    #[cfg(feature = "candle")]
    pub fn mask(&self) -> Option<Vec<f32>> {
        let entry = |i: u32, j: u32| if j <= i { 0.0 } else { f32::NEG_INFINITY };
        let row = |i| (0..self.keys).map(move |j| entry(i, j));
        self.causal().then(|| (0..self.rows).flat_map(row).collect())
    }

    /// Floating-point operations: a multiplication and an addition for each element of a key and
    /// of a value that a query sees. Causal: half of them.
    pub fn flops(&self) -> f64 {
        let [heads, rows, keys, dim] = [self.heads, self.rows, self.keys, self.dim].map(f64::from);
        4.0 * heads * rows * keys * dim * if self.causal() { 0.5 } else { 1.0 }
    }

    /// The largest error of an answer `[head, row, dim]` in a few rows of every head; infinite if
    /// it has another length or anything that is no number.
    pub fn error(&self, answer: &[f32]) -> f64 {
        if answer.len() != self.q.len() || !answer.iter().all(|x| x.is_finite()) {
            return f64::INFINITY;
        }
        let (problem, inputs) = (self.problem(), Inputs::new(&self.q, &self.k, &self.v));
        let dim = self.dim as usize;
        let mut most = 0.0f64;
        for head in 0..self.heads {
            let mut rows = vec![0, 1, self.rows / 3, self.rows / 2, self.rows - 1];
            rows.retain(|&row| row < self.rows);
            rows.dedup();
            for row in rows {
                let want = cpu::row(&problem, inputs, [0, head, row]).expect("a good call").o;
                let first = (head * self.rows + row) as usize * dim;
                for (got, want) in answer[first..first + dim].iter().zip(&want) {
                    most = most.max((f64::from(*got) - want).abs());
                }
            }
        }
        most
    }

    pub fn title(&self) -> String {
        let Case { heads, rows, keys, dim, .. } = self;
        match self.kind {
            Kind::Prefill { causal } => {
                let causal = if causal { ", causal" } else { "" };
                format!("Prefill, {rows} tokens{causal}, {heads} heads of {dim}, f32")
            }
            Kind::Decode => format!("Decode, {rows} x {keys} keys, {heads} heads of {dim}, f32"),
        }
    }
}
