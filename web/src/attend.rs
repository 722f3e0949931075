//! One call: dot products, scores, weights and output, with everything in between kept.

use wasm_bindgen::prelude::*;
use wgpu_attention::{
    Choice, Error, Gpu, Inputs, Layout, Method, Operand, Output, Problem, Shape, Tile, cpu,
};

use crate::{Engine, told};

/// What is computed.
#[wasm_bindgen]
pub struct Call {
    problem: Problem,
}

#[wasm_bindgen]
impl Call {
    /// `heads` of `queries` over `keys`, `dim` numbers each: q `[head, query, dim]`, k and v
    /// `[head, key, dim]`.
    #[wasm_bindgen(constructor)]
    pub fn new(heads: u32, queries: u32, keys: u32, dim: u32) -> Call {
        let shape = Shape::self_attention(1, heads, queries, dim).kv_len(keys);
        Call { problem: Problem::new(shape) }
    }

    /// No division by sqrt(dim).
    pub fn undivided(self) -> Call {
        Call { problem: self.problem.scale(1.0) }
    }

    /// No token sees a later one.
    pub fn causal(self) -> Call {
        Call { problem: self.problem.causal() }
    }

    /// Heads lie side by side in a token: q `[query, head, dim]`, k and v `[key, head, dim]`.
    pub fn token_major(self) -> Call {
        let shape = self.problem.shape();
        let lengths = [shape.q_len, shape.kv_len, shape.kv_len];
        let problem = [Operand::Q, Operand::K, Operand::V].into_iter().zip(lengths).fold(
            self.problem,
            |problem, (operand, len)| {
                problem.layout(operand, Layout::token_major(shape.q_heads, len, shape.head_dim))
            },
        );
        Call { problem }
    }
}

/// Every step of one call.
#[wasm_bindgen]
pub struct Attended {
    dots: Vec<f32>,
    staged: Output,
    fused: Output,
}

#[wasm_bindgen]
impl Attended {
    /// q . k, `[head, query, key]`; -inf where the query does not see the key.
    #[wasm_bindgen(getter)]
    pub fn dots(&self) -> Vec<f32> {
        self.dots.clone()
    }

    /// What the softmax got, likewise.
    #[wasm_bindgen(getter)]
    pub fn scores(&self) -> Vec<f32> {
        self.staged.scores.clone().unwrap_or_default()
    }

    /// The weights, likewise; each row sums to 1.
    #[wasm_bindgen(getter)]
    pub fn weights(&self) -> Vec<f32> {
        self.staged.weights.clone().unwrap_or_default()
    }

    /// `[head, query, dim]`, from the fused kernel, which stores no scores.
    #[wasm_bindgen(getter)]
    pub fn output(&self) -> Vec<f32> {
        self.fused.o.clone()
    }

    /// The largest difference between the staged kernels' output and the fused one's.
    #[wasm_bindgen(getter)]
    pub fn difference(&self) -> f32 {
        let pairs = self.staged.o.iter().zip(&self.fused.o);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }
}

#[wasm_bindgen]
impl Engine {
    /// Computes every step: dot products, scores and weights with the staged kernels, the output
    /// with the staged and again with the fused one.
    ///
    /// # Errors
    /// A length that does not fit the call, a device that is too small or lost.
    pub async fn attend(
        &self,
        call: Call,
        q: Vec<f32>,
        k: Vec<f32>,
        v: Vec<f32>,
    ) -> Result<Attended, JsError> {
        let inputs = Inputs::new(&q, &k, &v);
        match self.gpu() {
            Some(gpu) => on_gpu(gpu, &call.problem, inputs).await,
            None => on_cpu(&call.problem, inputs),
        }
        .map_err(told)
    }
}

async fn on_gpu(gpu: &Gpu, problem: &Problem, inputs: Inputs<'_>) -> Result<Attended, Error> {
    let [undivided, divided] = stored(problem);
    let (staged, fused) = (Choice::method(Method::Staged), Choice::method(Method::Flash));
    let dots = gpu.attention_async(&undivided, inputs, staged).await?.scores;
    Ok(Attended {
        dots: dots.unwrap_or_default(),
        staged: gpu.attention_async(&divided, inputs, staged).await?,
        fused: gpu.attention_async(problem, inputs, fused).await?,
    })
}

fn on_cpu(problem: &Problem, inputs: Inputs<'_>) -> Result<Attended, Error> {
    let [undivided, divided] = stored(problem);
    Ok(Attended {
        dots: cpu::attention(&undivided, inputs)?.scores.unwrap_or_default(),
        staged: cpu::attention(&divided, inputs)?,
        fused: cpu::flash(problem, inputs, Tile { queries: 32, keys: 32 }, None)?,
    })
}

/// The same outputs for dot products and scores, so that the same kernels serve both.
fn stored(problem: &Problem) -> [Problem; 2] {
    [problem.clone().scale(1.0), problem.clone()].map(|problem| problem.scores().weights())
}
