//! A few words with a query, a key and a value each.

use wgpu_attention::{Error, Inputs, Output, Problem, Shape};

use super::demo::Demo;

/// The signature that the CPU reference and the GPU share.
pub type Attend<'a> = &'a dyn Fn(&Problem, Inputs<'_>) -> Result<Output, Error>;

/// One sequence, one head.
pub struct Tokens {
    pub words: Vec<String>,
    /// `[token, dim]`, as K and V.
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
    pub dim: usize,
}

impl Tokens {
    /// The lesson's six.
    pub fn demo(demo: &Demo) -> Tokens {
        let part = |name| demo.numbers(name).into_iter().map(|x| x as f32).collect::<Vec<_>>();
        let words: Vec<_> = demo.texts("/tokens").into_iter().map(String::from).collect();
        let q = part("/q");
        Tokens { dim: q.len() / words.len(), q, k: part("/k"), v: part("/v"), words }
    }

    pub fn shape(&self) -> Shape {
        Shape::self_attention(1, 1, self.words.len() as u32, self.dim as u32)
    }
}
