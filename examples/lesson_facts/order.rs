//! What the order of the tokens changes: nothing, unless a mask brings it in.

use std::fmt;

use wgpu_attention::{Error, Inputs, Problem};

use wgpu_attention_support::lesson::figures::vector;
use wgpu_attention_support::lesson::tokens::{Attend, Tokens};

/// The outputs of tokens in one order and in another.
pub struct Order {
    words: [Vec<String>; 2],
    dim: usize,
    /// `[token, dim]`, both in the tokens' first order.
    outputs: [Vec<f32>; 2],
}

impl Order {
    /// Position i of the second order holds token order[i].
    pub fn compare(
        tokens: &Tokens,
        order: &[usize],
        causal: bool,
        attend: Attend<'_>,
    ) -> Result<Order, Error> {
        let output = |tokens: &Tokens| {
            let problem = Problem::new(tokens.shape());
            let problem = if causal { problem.causal() } else { problem };
            Ok(attend(&problem, Inputs::new(&tokens.q, &tokens.k, &tokens.v))?.o)
        };
        let second = shuffled(tokens, order);
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(i, &token)| back[token] = i);
        let outputs = [output(tokens)?, rows(&output(&second)?, tokens.dim, &back)];
        let words = [tokens.words.clone(), second.words];
        Ok(Order { words, dim: tokens.dim, outputs })
    }

    /// The difference, in words where there is none.
    pub fn readable(&self) -> String {
        match self.difference() {
            0.0 => "none".into(),
            small if small < 1e-3 => format!("{small:.0e}"),
            large => format!("{large:.2}"),
        }
    }

    /// The largest between a token's two outputs.
    pub fn difference(&self) -> f32 {
        let [first, second] = &self.outputs;
        first.iter().zip(second).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }
}

/// Queries, keys and values in another order.
pub fn shuffled(tokens: &Tokens, order: &[usize]) -> Tokens {
    let dim = tokens.dim;
    let [q, k, v] = [&tokens.q, &tokens.k, &tokens.v].map(|part| rows(part, dim, order));
    Tokens { words: order.iter().map(|&token| tokens.words[token].clone()).collect(), q, k, v, dim }
}

fn rows(part: &[f32], dim: usize, order: &[usize]) -> Vec<f32> {
    order.iter().flat_map(|&token| &part[token * dim..][..dim]).copied().collect()
}

/// Three words, a vector each (animal, human, action), which is query, key and value at once.
pub fn dog_bites_man() -> Tokens {
    let x = vec![1.5, 0.2, 0.6, 0.8, 0.1, 1.6, 0.2, 1.5, 0.7];
    let words = ["dog", "bites", "man"].map(String::from).into();
    Tokens { words, q: x.clone(), k: x.clone(), v: x, dim: 3 }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.words.each_ref().map(|words| format!("\"{}\"", words.join(" ")));
        writeln!(f, "{:>8}  {first:>19}  {second:>19}", "")?;
        for (i, word) in self.words[0].iter().enumerate() {
            let [first, second] =
                self.outputs.each_ref().map(|output| vector(&output[i * self.dim..][..self.dim]));
            writeln!(f, "{word:>8}  {first:>19}  {second:>19}")?;
        }
        write!(f, "  largest difference for the same word: {}", self.readable())
    }
}
