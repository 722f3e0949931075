//! What attends to what: tokens, and the numbers that the program's own pass makes queries, keys
//! and values of.

use wgpu_attention::{Error, Inputs, Layout, Operand, Problem, Shape, cpu};

use wgpu_attention_support::sentence::{Sentence, WORD};

/// The lesson's six tokens, d_model 6: embeddings and a projection that give exactly the lesson's
/// two-dimensional queries, keys and values.
const SIX: [&str; 6] = ["The", "cat", "sat", "on", "the", "mat"];
const X: [[f32; 6]; 6] = [
    [0.8, -1.2, 0.4, 1.8, -1.6, -0.6],
    [0.0, 1.7, 0.0, -1.2, 2.2, 0.7],
    [-1.1, -1.8, 1.6, 1.8, -1.2, -2.9],
    [-0.8, -2.7, -0.2, 2.4, -0.6, -0.5],
    [-2.1, -2.2, -1.8, 1.2, 0.4, -1.9],
    [0.9, 2.5, 1.5, -2.7, 0.3, -1.0],
];
/// Columns: two of W_Q, of W_K, of W_V.
const W: [[f32; 6]; 6] = [
    [1.0, 1.0, 0.0, 0.0, 1.0, 1.0],
    [0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
    [0.0, 0.0, 1.0, 1.0, -1.0, 0.0],
    [1.0, 1.0, 0.0, 1.0, 1.0, 1.0],
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
    [-1.0, -1.0, 0.0, 0.0, -1.0, 0.0],
];

/// The program's own pass.
pub struct Pass {
    /// Entry point and label.
    pub name: &'static str,
    pub wgsl: &'static str,
    /// The uniform at binding 0.
    pub sizes: Vec<u32>,
    /// Storage at the bindings from 1 on; the packed result follows them.
    pub inputs: Vec<Vec<f32>>,
}

/// Tokens, and how their attention is computed.
pub struct Source {
    /// Whose they are, and the words.
    pub text: String,
    pub tokens: Vec<String>,
    pub pass: Pass,
    /// Packed queries, keys and values as the pass should make them, `[token, 3, head, dim]`.
    packed: Vec<f32>,
    heads: u32,
    dim: u32,
    /// The head that is drawn.
    pub head: u32,
    /// The query that is told about.
    pub word: &'static str,
    pub causal: bool,
}

impl Source {
    pub fn six() -> Source {
        let row = |x: &[f32; 6]| {
            let column = |c: usize| (0..6).map(|d| x[d] * W[d][c]).sum();
            (0..6).map(column).collect::<Vec<f32>>()
        };
        Source {
            text: format!("The lesson's six tokens: {}", SIX.join(" ")),
            tokens: SIX.map(String::from).into(),
            pass: Pass {
                name: "project",
                wgsl: include_str!("project.wgsl"),
                sizes: vec![6, 6, 6],
                inputs: vec![X.concat(), W.concat()],
            },
            packed: X.iter().flat_map(row).collect(),
            heads: 1,
            dim: 2,
            head: 0,
            word: "sat",
            causal: false,
        }
    }

    /// A layer and a head of all-MiniLM-L6-v2.
    pub fn sentence(number: u32, head: u32) -> Result<Source, String> {
        let sentence = Sentence::load();
        let numbers: Vec<u32> = sentence.layers.iter().map(|layer| layer.number).collect();
        if !numbers.contains(&number) {
            return Err(format!("--layer: there are {numbers:?}, not {number}"));
        }
        let layer = sentence.layer(number);
        let (heads, dim) = (12, 32);
        if head >= heads {
            return Err(format!("--head: there are 0 to {}, not {head}", heads - 1));
        }
        let columns = (heads * dim) as usize;
        let parts = [&layer.q, &layer.k, &layer.v];
        let tokens = 0..sentence.tokens.len();
        let packed = tokens.flat_map(|token| parts.map(|part| &part[token * columns..][..columns]));
        Ok(Source {
            text: format!("all-MiniLM-L6-v2, layer {number}, head {head}: {}", sentence.text),
            tokens: sentence.tokens.clone(),
            pass: Pass {
                name: "pack",
                wgsl: include_str!("pack.wgsl"),
                sizes: vec![sentence.tokens.len() as u32, columns as u32],
                inputs: parts.map(Vec::clone).into(),
            },
            packed: packed.flatten().copied().collect(),
            heads,
            dim,
            head,
            word: WORD,
            causal: false,
        })
    }

    /// Attention over the packed rows, with the weights wanted.
    pub fn problem(&self) -> Problem {
        let tokens = self.tokens.len() as u32;
        let (columns, dim) = (self.heads * self.dim, self.dim);
        let row = 3 * columns;
        let part = |at| Layout { offset: at * columns, batch: tokens * row, head: dim, token: row };
        let problem = Problem::new(Shape::self_attention(1, self.heads, tokens, dim)).weights();
        let problem = [Operand::Q, Operand::K, Operand::V]
            .into_iter()
            .zip(0..)
            .fold(problem, |problem, (operand, at)| problem.layout(operand, part(at)));
        if self.causal { problem.causal() } else { problem }
    }

    /// Query and key of the largest weight that the word gives.
    pub fn most(&self, weights: &[Vec<f64>]) -> [usize; 2] {
        let query = self.tokens.iter().position(|token| token == self.word).unwrap_or_default();
        let row = &weights[query];
        let key = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
        [query, key.unwrap_or_default()]
    }

    /// The same in words.
    pub fn finding(&self, weights: &[Vec<f64>]) -> String {
        let [query, key] = self.most(weights);
        let (from, to, percent) =
            (&self.tokens[query], &self.tokens[key], 100.0 * weights[query][key]);
        let causal = if self.causal { ", causal" } else { "" };
        format!("\"{from}\" attends most to \"{to}\", {percent:.0} %{causal}")
    }

    /// What the picture should show: weights of the head by the CPU reference, `[query, key]`.
    pub fn weights(&self) -> Result<Vec<Vec<f64>>, Error> {
        let (problem, qkv) = (self.problem(), &self.packed);
        let row = |i: u32| cpu::row(&problem, Inputs::new(qkv, qkv, qkv), [0, self.head, i]);
        (0..problem.shape().q_len).map(|i| row(i).map(|row| row.weights)).collect()
    }
}
