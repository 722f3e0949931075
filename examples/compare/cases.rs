//! What is compared: problems, their operands, and the right answers where a file has them.

use wgpu_attention::{Align, Error, Problem, Shape};

use wgpu_attention_support::resident::Operands;
use wgpu_attention_support::sentence::{Layer, Sentence};

/// One problem with its numbers.
pub struct Case {
    pub name: String,
    pub problem: Problem,
    pub operands: Operands,
    /// The whole output in f64, from elsewhere; `None`: the CPU reference's.
    pub out: Option<Vec<f64>>,
}

impl Case {
    /// normal(0, 1) numbers.
    pub fn new(problem: Problem) -> Result<Case, Error> {
        problem.validate()?;
        let operands = Operands::normal(&problem);
        Ok(Case { name: name(problem.shape()), problem, operands, out: None })
    }

    fn suffix(self, what: &str) -> Case {
        Case { name: format!("{} {what}", self.name), ..self }
    }

    fn layer(layer: &Layer) -> Case {
        let [q, k, v] = [&layer.q, &layer.k, &layer.v].map(Vec::clone);
        Case {
            name: format!("the sentence, layer {}", layer.number),
            problem: Layer::problem(),
            operands: Operands { q, k, v },
            out: Some(layer.out.clone()),
        }
    }
}

/// The sentence's layers, then the listed shapes.
pub fn all(sentence: &Sentence, quick: bool) -> Result<Vec<Case>, Error> {
    let same = Shape::self_attention;
    let mut cases: Vec<Case> = sentence.layers.iter().map(Case::layer).collect();
    cases.push(Case::new(Problem::new(same(1, 8, 128, 64)))?);
    cases.push(Case::new(Problem::new(same(1, 3, 101, 40).kv_len(77).value_dim(24)))?);
    if quick {
        return Ok(cases);
    }
    cases.push(Case::new(Problem::new(same(1, 8, 256, 64)).causal())?.suffix("causal"));
    cases.push(Case::new(Problem::new(same(1, 8, 256, 128).kv_heads(2)))?);
    let decode = Problem::new(same(1, 8, 1, 64).kv_len(2048)).causal().align(Align::BottomRight);
    cases.push(Case::new(decode)?.suffix("causal"));
    cases.push(Case::new(Problem::new(same(2, 12, 197, 64)))?);
    Ok(cases)
}

/// Sizes, the second of a pair only where it differs.
fn name(shape: Shape) -> String {
    let pair = |a: u32, b: u32| if a == b { a.to_string() } else { format!("{a}:{b}") };
    let heads = pair(shape.q_heads, shape.kv_heads);
    let tokens = pair(shape.q_len, shape.kv_len);
    let dim = pair(shape.head_dim, shape.value_dim);
    format!("{} x {heads} x {tokens} x {dim}", shape.batch)
}
