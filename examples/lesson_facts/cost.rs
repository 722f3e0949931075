//! How many scores there are.

use std::fmt;

use wgpu_attention::{Operand, Problem, Shape};

/// Of one head over so many tokens of 64 dims.
pub struct Cost {
    pub tokens: u32,
    /// Every query with every key.
    pub scores: u64,
    /// Every query with the keys up to its own.
    pub causal: u64,
    /// The same two against half as many tokens.
    pub ratios: [f64; 2],
    /// Memory of the stored scores.
    pub bytes: u64,
    /// Multiplications and additions for q . k, and for the values.
    pub flops: u64,
}

impl Cost {
    pub fn of(tokens: u32) -> Cost {
        let problem = |tokens| Problem::new(Shape::self_attention(1, 1, tokens, 64)).scores();
        let scores = |tokens| problem(tokens).elements(Operand::Scores);
        let causal = |tokens| u64::from(tokens) * (u64::from(tokens) + 1) / 2;
        let ratio = |count: &dyn Fn(u32) -> u64| count(tokens) as f64 / count(tokens / 2) as f64;
        Cost {
            tokens,
            scores: scores(tokens),
            causal: causal(tokens),
            ratios: [ratio(&scores), ratio(&causal)],
            bytes: 4 * scores(tokens),
            flops: 2 * scores(tokens) * (64 + 64),
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [all, causal] = self.ratios.map(|ratio| format!("x {ratio:.2}"));
        write!(f, "{:>8}  {:>10}  {all:>8}  ", self.tokens, self.scores)?;
        let (bytes, mflop) = (readable(self.bytes), self.flops as f64 / 1e6);
        write!(f, "{:>13}  {causal:>8}  {bytes:>7}  {mflop:>8.2}", self.causal)
    }
}

fn readable(bytes: u64) -> String {
    match bytes {
        small if small < 1 << 10 => format!("{small} B"),
        small if small < 1 << 20 => format!("{} KiB", small >> 10),
        large => format!("{} MiB", large >> 20),
    }
}
