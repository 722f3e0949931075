//! Several heads: what they cost, and how they differ.
//!
//! `cargo run --example multi_head`
//!
//! First a layer of d_model 512 = 8 heads of 64 with random weights, recorded into one encoder and
//! compared with its CPU mirror. Then the twelve heads of a layer of a real model.

use std::process::ExitCode;

use clap::Parser;
use rand::{SeedableRng, rngs::StdRng};
use rand_distr::{Distribution, Normal};
use wgpu_attention::{
    Buffers, Error, Gpu, LayerInputs, LayerOutput, MultiHead, MultiHeadPlan, Operand, Problem,
    Shape, cpu,
};
use wgpu_attention_support::sentence::{CLAIMS, Layer, Sentence, WORD};

/// Shows a multi-head layer of 512 = 8 x 64, and what each head of a real model looks at.
///
/// Exit code: 0 if the GPU agrees with the CPU, 1 if not, 2 if it could not be asked.
#[derive(Parser)]
struct Args {
    /// Tokens of the layer with random weights
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4096))]
    tokens: u32,
    /// Layer of the real model: 0, 2 or 5
    #[arg(long, value_name = "N", default_value = "0", value_parser = ["0", "2", "5"])]
    layer: String,
}

const D_MODEL: u32 = 512;
const HEADS: u32 = 8;
const HEAD_DIM: u32 = 64;

/// Largest absolute error against f64.
const TOLERANCE: f64 = 1e-5;

fn main() -> ExitCode {
    let args = Args::parse();
    let told = Gpu::new().and_then(|gpu| {
        let info = gpu.device().adapter_info();
        println!("adapter  {} ({:?})\n", info.name, info.backend);
        let random = tell_layer(&gpu, args.tokens)?;
        let real = tell_heads(&gpu, args.layer.parse().unwrap_or(0))?;
        Ok(random.max(real))
    });
    match told {
        Ok(error) if error <= TOLERANCE => ExitCode::SUCCESS,
        Ok(error) => {
            eprintln!("multi_head: off by {error:.1e}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("multi_head: {error}");
            ExitCode::from(2)
        }
    }
}

/// The layer in numbers; gives its largest error.
fn tell_layer(gpu: &Gpu, tokens: u32) -> Result<f64, Error> {
    let problem = || Problem::new(Shape::self_attention(1, HEADS, tokens, HEAD_DIM));
    let layer = MultiHead::new(D_MODEL, problem());
    let weights = [Operand::Wq, Operand::Wk, Operand::Wv, Operand::Wo];
    let parameters: u64 = weights.iter().map(|&operand| layer.elements(operand)).sum();
    let n = u64::from(tokens);
    println!("{HEADS} heads of {HEAD_DIM} = {D_MODEL}, {tokens} tokens, random weights");
    let line = |name: &str, text: String| println!("  {name:12} {text}");
    let count = thousands(parameters);
    line(
        "parameters",
        format!("{count} = 4 x {D_MODEL} x {D_MODEL}, for {HEADS} heads as for one"),
    );
    let operations = |heads: u32, dim: u32| 4 * u64::from(heads) * n * n * u64::from(dim);
    let [many, one] = [operations(HEADS, HEAD_DIM), operations(1, D_MODEL)].map(thousands);
    line("attention", format!("{many} operations; one head of {D_MODEL}: {one}"));
    let [many, one] = [HEADS, 1].map(|heads| thousands(u64::from(heads) * n * n));
    line("scores", format!("{many} = {HEADS} n n; one head: {one}"));

    // Tokens of spread 1, weights that keep it.
    let part = |operand: Operand, spread: f32| -> Vec<f32> {
        let mut rng = StdRng::seed_from_u64(operand as u64);
        let normal = Normal::new(0.0, spread).expect("a spread above 0");
        normal.sample_iter(&mut rng).take(layer.elements(operand) as usize).collect()
    };
    let x = part(Operand::X, 1.0);
    let matrices = weights.map(|operand| part(operand, (D_MODEL as f32).sqrt().recip()));
    let inputs = LayerInputs::new(&x, matrices.each_ref().map(|matrix| &matrix[..]));

    let spread = |problem: Problem| -> Result<f64, Error> {
        let layer = MultiHead::new(D_MODEL, problem.scores());
        Ok(deviation(&gpu.multi_head(&layer, inputs)?.scores.unwrap_or_default()))
    };
    let wrong = (D_MODEL as f32).sqrt().recip();
    let (right_spread, wrong_spread) = (spread(problem())?, spread(problem().scale(wrong))?);
    line("scale", format!("1/sqrt({HEAD_DIM}) = 0.125: scores have a spread of {right_spread:.2}"));
    line(
        "",
        format!("with 1/sqrt({D_MODEL}) = {wrong:.4} it would be {wrong_spread:.2}: too flat"),
    );

    let plan = gpu.planner().plan_multi_head(&layer)?;
    let attention: Vec<&str> =
        plan.attention().describe().dispatches.iter().map(|dispatch| dispatch.kernel).collect();
    line("one submit", format!("project q, k, v; {}; project the heads", attention.join(", ")));
    let kib = |bytes: u64| format!("{} KiB", bytes.div_ceil(1024));
    let (projected, scratch) = (kib(plan.projected_bytes()), kib(plan.scratch_bytes()));
    line("memory", format!("{projected} for q, k and v, {scratch} of scratch, known beforehand"));
    let y = run(gpu, &layer, &plan, inputs)?;
    let LayerOutput { y: expected, .. } = cpu::multi_head(&layer, inputs)?;
    let expected: Vec<f64> = expected.iter().copied().map(f64::from).collect();
    let error = largest_error(&y, &expected);
    let count = thousands(y.len() as u64);
    line("GPU and CPU", format!("{count} outputs, largest error {error:.1e}\n"));
    Ok(error)
}

/// The whole layer by hand: buffers, one encoder, one submit, y.
fn run(
    gpu: &Gpu,
    layer: &MultiHead,
    plan: &MultiHeadPlan,
    inputs: LayerInputs<'_>,
) -> Result<Vec<f32>, Error> {
    let buffer = |bytes: u64, usage: wgpu::BufferUsages| {
        gpu.device().create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes,
            usage,
            mapped_at_creation: false,
        })
    };
    let storage = wgpu::BufferUsages::STORAGE;
    let upload = |numbers: &[f32]| {
        let bytes: &[u8] = bytemuck::cast_slice(numbers);
        let to = buffer(bytes.len() as u64, storage | wgpu::BufferUsages::COPY_DST);
        gpu.queue().write_buffer(&to, 0, bytes);
        to
    };
    let (x, [w_q, w_k, w_v, w_o]) = (upload(inputs.x), inputs.weights.map(upload));
    let y_bytes = 4 * layer.elements(Operand::Y);
    let y = buffer(y_bytes, storage | wgpu::BufferUsages::COPY_SRC);
    let read = buffer(y_bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let [projected, scratch] =
        [plan.projected_bytes(), plan.scratch_bytes()].map(|bytes| buffer(bytes, storage));
    let buffers = Buffers::default()
        .with(Operand::X, &x)
        .with(Operand::Wq, &w_q)
        .with(Operand::Wk, &w_k)
        .with(Operand::Wv, &w_v)
        .with(Operand::Wo, &w_o)
        .with(Operand::Y, &y)
        .with(Operand::Projected, &projected)
        .with(Operand::Scratch, &scratch);
    let bound = plan.bind(buffers)?;

    let mut encoder = gpu.device().create_command_encoder(&Default::default());
    bound.encode_in(&mut encoder);
    encoder.copy_buffer_to_buffer(&y, 0, &read, 0, y_bytes);
    // A mapping that fails shows when the range is asked for.
    encoder.map_buffer_on_submit(&read, wgpu::MapMode::Read, .., drop);
    let submission = gpu.queue().submit([encoder.finish()]);
    let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
    gpu.device().poll(wait).map_err(|error| Error::DeviceLost(error.to_string()))?;
    let view = read.get_mapped_range(..).map_err(|error| Error::Device(error.to_string()))?;
    Ok(bytemuck::pod_collect_to_vec(&view))
}

/// What the heads of a real model look at; gives the largest error.
fn tell_heads(gpu: &Gpu, number: u32) -> Result<f64, Error> {
    let sentence = Sentence::load();
    let layer = sentence.layer(number);
    let output = gpu.attention(&Layer::problem().weights(), layer.inputs())?;
    let weights = output.weights.unwrap_or_default();
    let n = sentence.tokens.len();
    println!("The heads of all-MiniLM-L6-v2, layer {number}, on");
    println!("  \"{}\"", sentence.text);
    println!("Entropy in bits (at most {:.0}), then mean weights in percent:\n", (n as f64).log2());
    let columns = LOOKS.map(|look| format!("{:>8}", look.name)).concat();
    println!("  head  entropy{columns}   looks at    \"{WORD}\" attends most to");
    for (head, rows) in weights.chunks(n * n).enumerate() {
        let shares = LOOKS.map(|look| share(rows, n, look));
        let entropy = entropy(rows) / n as f64;
        let percents = shares.map(|share| format!("{:>8.0}", 100.0 * share)).concat();
        let (at, most) = (0..LOOKS.len())
            .map(|at| (at, shares[at]))
            .fold((0, 0.0), |best, look| if look.1 > best.1 { look } else { best });
        // Where half of the weight goes is what a head is for.
        let what = if most >= 0.5 { LOOKS[at].name } else { "" };
        let (token, weight) = sentence.most(&weights, head);
        let claim = CLAIMS.iter().any(|claim| (claim.0, claim.1) == (number, head));
        let claim = if claim { "   the lesson's" } else { "" };
        println!(
            "  {head:4}  {entropy:7.2}{percents}   {what:10}  {token:8} {:3.0} %{claim}",
            100.0 * weight
        );
    }
    let error = largest_error(&weights, &layer.weights).max(largest_error(&output.o, &layer.out));
    println!();
    for (layer, head, token, percent) in CLAIMS.into_iter().filter(|claim| claim.0 != number) {
        println!(
            "  --layer {layer}, head {head}: \"{WORD}\" attends most to \"{token}\", {percent} %"
        );
    }
    println!("  GPU and expected values: largest error {error:.1e}");
    Ok(error)
}

/// A key that a query may look at: its own place plus an offset, or a fixed place.
#[derive(Clone, Copy)]
struct Look {
    name: &'static str,
    key: fn(query: usize, tokens: usize) -> Option<usize>,
}

const LOOKS: [Look; 5] = [
    Look { name: "itself", key: |query, _| Some(query) },
    Look { name: "before", key: |query, _| query.checked_sub(1) },
    Look { name: "after", key: |query, tokens| Some(query + 1).filter(|&key| key < tokens) },
    Look { name: "[CLS]", key: |_, _| Some(0) },
    Look { name: "[SEP]", key: |_, tokens| tokens.checked_sub(1) },
];

/// Mean weight that the queries give to what they look at, `rows` `[query, key]`.
fn share(rows: &[f32], n: usize, look: Look) -> f64 {
    let weight = |query: usize| Some(f64::from(rows[query * n + (look.key)(query, n)?]));
    let weights: Vec<f64> = (0..n).filter_map(weight).collect();
    weights.iter().sum::<f64>() / weights.len().max(1) as f64
}

/// In bits, summed over the rows.
fn entropy(weights: &[f32]) -> f64 {
    let weights = weights.iter().copied().map(f64::from).filter(|&p| p > 0.0);
    weights.map(|p| -p * p.log2()).sum()
}

/// 1,048,576
fn thousands(n: u64) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", thousands(n / 1000), n % 1000) }
}

fn deviation(numbers: &[f32]) -> f64 {
    let numbers = || numbers.iter().copied().map(f64::from);
    let n = numbers().count().max(1) as f64;
    let mean = numbers().sum::<f64>() / n;
    (numbers().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
}

/// Infinite where a number is not one, or where the lengths differ.
fn largest_error(got: &[f32], want: &[f64]) -> f64 {
    if got.len() != want.len() {
        return f64::INFINITY;
    }
    let errors = got.iter().zip(want).map(|(&got, want)| (f64::from(got) - want).abs());
    errors.fold(0.0, |most, error| if error.is_nan() { f64::INFINITY } else { most.max(error) })
}
