//! The lesson's four steps: dot products, their division, softmax, values mixed.

use wgpu_attention::{Error, Inputs, Problem, Shape};

use super::tokens::{Attend, Tokens};

/// What may be changed about the steps.
#[derive(Clone, Copy)]
pub struct Form {
    /// Dot products are divided by sqrt(dim).
    pub divided: bool,
    /// No token sees a later one.
    pub causal: bool,
}

impl Form {
    /// As the lesson has it.
    pub const LESSON: Form = Form { divided: true, causal: false };
}

/// All numbers of one query, one a key but for the output.
pub struct Row {
    /// q . k; -inf where the query does not see the key.
    pub dots: Vec<f32>,
    /// What the softmax gets; -inf likewise.
    pub scores: Vec<f32>,
    pub weights: Vec<f32>,
    /// One a dim.
    pub output: Vec<f32>,
}

/// The steps for these queries, `[query, dim]`, over the tokens' keys and values.
///
/// A GPU stores scores and weights with its staged kernels, and makes the outputs a second time
/// with the fused one, which never stores them.
pub fn rows(
    tokens: &Tokens,
    queries: &[f32],
    form: Form,
    attend: Attend<'_>,
) -> Result<Vec<Row>, Error> {
    let count = queries.len() / tokens.dim;
    let shape = Shape { q_len: count as u32, ..tokens.shape() };
    let problem = Problem::new(shape);
    let problem = if form.causal { problem.causal() } else { problem };
    let undivided = problem.clone().scale(1.0);
    let problem = if form.divided { problem } else { undivided.clone() };

    let inputs = Inputs::new(queries, &tokens.k, &tokens.v);
    let dots = attend(&undivided.scores(), inputs)?.scores.unwrap_or_default();
    let staged = attend(&problem.clone().scores().weights(), inputs)?;
    let fused = attend(&problem, inputs)?.o;
    let [scores, weights] = [staged.scores, staged.weights].map(Option::unwrap_or_default);

    let row = |i: usize| {
        let of = |all: &[f32], width: usize| all[i * width..][..width].to_vec();
        let keys = tokens.words.len();
        Row {
            dots: of(&dots, keys),
            scores: of(&scores, keys),
            weights: of(&weights, keys),
            output: of(&fused, tokens.dim),
        }
    };
    Ok((0..count).map(row).collect())
}
