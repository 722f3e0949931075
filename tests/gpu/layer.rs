//! Projections and the whole multi-head layer, against their CPU mirrors.

mod buffers;
mod errors;
mod extras;
mod program;
mod slices;

use wgpu_attention::{
    Align, Band, Choice, Gpu, LayerInputs, LayerOutput, Method, MultiHead, Operand, Problem,
    Projection, ProjectionInputs, Rows, Shape, cpu,
};

use crate::support::{default_limits_gpu, gpu, max_error, normal};

/// Largest error of a product whose sums have so many normal(0, 1) x normal(0, 1/input) terms.
const TOLERANCE: f32 = 1e-5;

fn operand(projection: &Projection, operand: Operand, seed: u64) -> Vec<f32> {
    normal(projection.elements(operand) as usize, seed + operand as u64)
}

#[test]
fn projections_equal_the_cpu() {
    let rows = |offset, stride| Rows { offset, stride };
    let new = Projection::new;
    let cases = [
        new(1, 1, 1),
        new(6, 2, 3).bias(),
        new(33, 17, 65).bias().residual(),
        new(64, 64, 64).residual(),
        new(65, 129, 31),
        new(127, 512, 96).bias(),
        new(3, 4096, 8),
        new(0, 8, 8),
        new(16, 40, 24).rows(Operand::X, rows(8, 48)).rows(Operand::Y, rows(4, 32)),
        new(16, 40, 24).rows(Operand::X, rows(7, 41)).rows(Operand::Y, rows(3, 25)).bias(),
        new(9, 12, 20).rows(Operand::W, rows(100_000, 24)).rows(Operand::B, rows(5, 0)).bias(),
        new(9, 12, 20).rows(Operand::Residual, rows(1, 0)).residual(),
    ];
    for (seed, projection) in (100..).zip(&cases) {
        let of = |o| operand(projection, o, 40 * seed);
        let (x, mut w, b, r) =
            (of(Operand::X), of(Operand::W), of(Operand::B), of(Operand::Residual));
        let spread = (w.len().max(1) as f32).sqrt();
        w.iter_mut().for_each(|w| *w /= spread.min(64.0));
        let mut inputs = ProjectionInputs::new(&x, &w);
        inputs = if b.is_empty() { inputs } else { inputs.bias(&b) };
        inputs = if r.is_empty() { inputs } else { inputs.residual(&r) };
        let want = cpu::project(projection, inputs).expect("cpu");
        for gpu in [gpu(), default_limits_gpu()] {
            let got = gpu.project(projection, inputs).expect("gpu");
            let error = max_error(&got, &want);
            assert!(error <= TOLERANCE, "{projection:?}: {error:e}");
        }
    }
}

/// Random operands for a layer, weights scaled so that a token keeps its spread.
struct Tensors {
    all: Vec<(Operand, Vec<f32>)>,
    has_context: bool,
    has_biases: bool,
}

const WEIGHTS: [Operand; 4] = [Operand::Wq, Operand::Wk, Operand::Wv, Operand::Wo];
const BIASES: [Operand; 4] = [Operand::Bq, Operand::Bk, Operand::Bv, Operand::Bo];

impl Tensors {
    fn new(layer: &MultiHead, seed: u64) -> Tensors {
        let shape = layer.problem().shape();
        let columns = |operand: Operand| match operand {
            Operand::Wq => shape.q_heads * shape.head_dim,
            Operand::Wk => shape.kv_heads * shape.head_dim,
            _ => shape.kv_heads * shape.value_dim,
        };
        // Rows of a weight matrix: the dims that a token has before it.
        let rows = |operand: Operand| match operand {
            Operand::Wo => shape.q_heads * shape.value_dim,
            _ => layer.elements(operand) as u32 / columns(operand),
        };
        let of = |operand: Operand| -> Vec<f32> {
            let scale = match operand {
                _ if WEIGHTS.contains(&operand) => 1.0 / (rows(operand) as f32).sqrt(),
                _ if BIASES.contains(&operand) => 0.5,
                _ => 1.0,
            };
            let x = normal(layer.elements(operand) as usize, 40 * seed + operand as u64);
            x.iter().map(|x| x * scale).collect()
        };
        let inputs = [Operand::X, Operand::Context, Operand::Bias];
        let all = inputs.into_iter().chain(WEIGHTS).chain(BIASES);
        Tensors {
            all: all.map(|operand| (operand, of(operand))).collect(),
            // Empty tensors count too, so their lengths do not tell.
            has_context: layer.clone().context(rows(Operand::Wk)) == *layer,
            has_biases: layer.clone().biases() == *layer,
        }
    }

    fn get(&self, operand: Operand) -> &[f32] {
        &self.all.iter().find(|x| x.0 == operand).expect("an input").1
    }

    fn get_mut(&mut self, operand: Operand) -> &mut Vec<f32> {
        &mut self.all.iter_mut().find(|x| x.0 == operand).expect("an input").1
    }

    fn inputs(&self) -> LayerInputs<'_> {
        let mut inputs =
            LayerInputs::new(self.get(Operand::X), WEIGHTS.map(|operand| self.get(operand)));
        if self.has_context {
            inputs = inputs.context(self.get(Operand::Context));
        }
        if self.has_biases {
            inputs = inputs.biases(BIASES.map(|operand| self.get(operand)));
        }
        match self.get(Operand::Bias) {
            [] => inputs,
            bias => inputs.bias(bias),
        }
    }

    /// Those that the layer has.
    fn given(&self) -> impl Iterator<Item = (Operand, &[f32])> {
        let has = |operand: Operand| match operand {
            Operand::Context => self.has_context,
            Operand::Bias => !self.get(operand).is_empty(),
            _ => self.has_biases || !BIASES.contains(&operand),
        };
        self.all.iter().filter(move |x| has(x.0)).map(|x| (x.0, &x.1[..]))
    }
}

/// The largest error of a layer over random inputs.
fn check(gpu: &Gpu, layer: &MultiHead, seed: u64, method: Option<Method>) -> f32 {
    let tensors = Tensors::new(layer, seed);
    let inputs = tensors.inputs();
    let want = cpu::multi_head(layer, inputs).expect("cpu");
    let got = match method {
        None => gpu.multi_head(layer, inputs),
        Some(method) => {
            pollster::block_on(gpu.multi_head_async(layer, inputs, Choice::method(method)))
        }
    };
    layer_error(&got.expect("gpu"), &want)
}

/// The largest error of any part; infinite where one is missing.
fn layer_error(got: &LayerOutput, want: &LayerOutput) -> f32 {
    let part = |got: &Option<Vec<f32>>, want: &Option<Vec<f32>>| match (got, want) {
        (Some(got), Some(want)) => max_error(got, want),
        (None, None) => 0.0,
        _ => f32::INFINITY,
    };
    max_error(&got.y, &want.y)
        .max(part(&got.lse, &want.lse))
        .max(part(&got.scores, &want.scores))
        .max(part(&got.weights, &want.weights))
}

#[test]
fn layers_equal_the_cpu() {
    let heads =
        |batch, heads, tokens, dim| Problem::new(Shape::self_attention(batch, heads, tokens, dim));
    let cross = |q_len, kv_len| {
        Problem::new(Shape::self_attention(2, 8, q_len, 64).kv_len(kv_len))
            .align(Align::BottomRight)
    };
    let window = Band { left: Some(5), right: Some(0) };
    let grouped = Shape::self_attention(2, 6, 33, 20).kv_heads(2).value_dim(12);
    let empty = Problem::new(Shape::self_attention(2, 3, 5, 8).kv_len(0));
    let cases = [
        ("512 = 8 x 64, 256 tokens", MultiHead::new(512, heads(1, 8, 256, 64))),
        ("causal", MultiHead::new(512, heads(1, 8, 256, 64).causal())),
        ("cross", MultiHead::new(512, cross(256, 100)).context(384)),
        ("cross, causal", MultiHead::new(512, cross(256, 300).causal()).context(512)),
        ("biases, residual", MultiHead::new(64, heads(3, 4, 17, 16).lse()).biases().residual()),
        ("grouped, odd", MultiHead::new(50, Problem::new(grouped).band(window)).biases()),
        ("weights", MultiHead::new(24, heads(1, 3, 20, 7).weights().scores().lse()).residual()),
        ("bias", MultiHead::new(24, heads(2, 3, 20, 8).bias_shape(&[3, 20, 20]))),
        ("one token", MultiHead::new(8, heads(1, 2, 1, 4)).biases()),
        ("no tokens", MultiHead::new(8, heads(1, 2, 0, 4))),
        ("no batch", MultiHead::new(8, heads(0, 2, 3, 4).lse()).biases()),
        ("an empty context", MultiHead::new(24, empty.lse()).context(16).biases().residual()),
    ];
    for (seed, (name, layer)) in (1..).zip(&cases) {
        let calls: &[(&Gpu, Option<Method>)] = &[
            (gpu(), None),
            (default_limits_gpu(), Some(Method::Staged)),
            (default_limits_gpu(), None),
            (gpu(), Some(Method::Staged)),
        ];
        // The large ones, which take seconds a call, once.
        let large = layer.problem().shape().head_dim == 64;
        let in_turn = if seed % 2 == 0 { &calls[..2] } else { &calls[2..] };
        for &(gpu, method) in if large { &calls[..1] } else { in_turn } {
            let error = check(gpu, layer, seed, method);
            println!("{name}: {error:e}");
            assert!(error <= TOLERANCE, "{name}, {method:?}: {error:e}");
        }
    }
}
