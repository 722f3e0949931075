//! Q, K and V of a real model on the lesson's sentence, with what follows from them in f64.

use safetensors::SafeTensors;
use wgpu_attention::{Inputs, Layout, Operand, Problem, Shape};

use crate::tensor::read;

const FILE: &[u8] = include_bytes!("../../data/minilm_lesson_sentence.safetensors");

/// The lesson's word, and where the model looks from it: layer, head, token, share in percent.
pub const WORD: &str = "it";
pub const CLAIMS: [(u32, usize, &str, u32); 2] = [(5, 11, "animal", 67), (2, 1, "tired", 71)];

/// The sentence as the model saw it.
pub struct Sentence {
    pub text: String,
    pub tokens: Vec<String>,
    pub layers: Vec<Layer>,
}

/// One attention layer of the model.
pub struct Layer {
    pub number: u32,
    /// `[1, 16, 12, 32]`, as K and V.
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
    /// Expected, `[1, 12, 16, 16]`.
    pub weights: Vec<f64>,
    /// Expected, `[1, 12, 16, 32]`.
    pub out: Vec<f64>,
}

impl Sentence {
    pub fn load() -> Sentence {
        let file = SafeTensors::deserialize(FILE).expect("the sentence file");
        let (_, header) = SafeTensors::read_metadata(FILE).expect("the sentence file's header");
        let metadata = header.metadata().clone().expect("the sentence file's metadata");
        let layer = |number: u32| {
            let name = |part: &str| format!("layer{number}.{part}");
            Layer {
                number,
                q: read(&file, &name("q")),
                k: read(&file, &name("k")),
                v: read(&file, &name("v")),
                weights: read(&file, &name("weights")),
                out: read(&file, &name("out")),
            }
        };
        Sentence {
            text: metadata["sentence"].clone(),
            tokens: serde_json::from_str(&metadata["tokens"]).expect("a list of tokens"),
            layers: [0, 2, 5].map(layer).into(),
        }
    }

    /// The layer with this number.
    pub fn layer(&self, number: u32) -> &Layer {
        let found = self.layers.iter().find(|layer| layer.number == number);
        found.unwrap_or_else(|| panic!("no layer {number}"))
    }

    /// What [`WORD`] attends to most in a head, and with what weight.
    pub fn most(&self, weights: &[f32], head: usize) -> (&str, f32) {
        let n = self.tokens.len();
        let word = self.tokens.iter().position(|token| token == WORD).expect("the word");
        let row = &weights[(head * n + word) * n..][..n];
        let most = (0..n).max_by(|&a, &b| row[a].total_cmp(&row[b])).expect("a token");
        (&self.tokens[most], row[most])
    }
}

impl Layer {
    /// Q, K and V lie token-major, as the model's projections leave them; O is head-major.
    pub fn problem() -> Problem {
        let problem = Problem::new(Shape::self_attention(1, 12, 16, 32));
        let token_major = Layout::token_major(12, 16, 32);
        [Operand::Q, Operand::K, Operand::V]
            .into_iter()
            .fold(problem, |problem, operand| problem.layout(operand, token_major))
    }

    pub fn inputs(&self) -> Inputs<'_> {
        Inputs::new(&self.q, &self.k, &self.v)
    }
}
