//! Cross-attention: the queries come from one sentence, the keys and values from another.
//!
//! `cargo run --example cross_attention`
//!
//! A decoder that has written "le chat noir ne dort pas" asks an encoder that has read "the black
//! cat does not sleep ." which word each of its own stands for. The embeddings are made by hand:
//! words of both languages share axes of meaning.

use std::process::ExitCode;

use clap::Parser;
use wgpu_attention::{Error, Gpu, Inputs, Operand, Output, Problem, Shape, cpu};

/// Shows which English word each French word attends to, and what cross-attention costs.
///
/// Exit code: 0 if the GPU agrees with the CPU reference, 1 if not, 2 if it could not be asked.
#[derive(Parser)]
struct Args {
    /// Length of every embedding: the longer, the sharper the softmax
    #[arg(long, value_name = "LENGTH", default_value_t = 3.5)]
    length: f32,
}

/// Largest absolute error against f64.
const TOLERANCE: f64 = 1e-5;

/// What words can have of meaning: the axes of the embeddings.
#[derive(Clone, Copy)]
enum Axis {
    Article,
    Cat,
    Black,
    Not,
    Sleep,
    Auxiliary,
    End,
}

const AXES: usize = 8;

/// A word, and how much it has of each axis.
type Word = (&'static str, &'static [(Axis, f32)]);

const DECODER: [Word; 6] = [
    ("le", &[(Axis::Article, 1.0), (Axis::Cat, 0.3)]),
    ("chat", &[(Axis::Cat, 1.0)]),
    ("noir", &[(Axis::Black, 1.0)]),
    ("ne", &[(Axis::Not, 1.0), (Axis::Auxiliary, 0.6)]),
    ("dort", &[(Axis::Sleep, 1.0), (Axis::Auxiliary, 0.4)]),
    ("pas", &[(Axis::Not, 1.0)]),
];

const ENCODER: [Word; 7] = [
    ("the", &[(Axis::Article, 1.0)]),
    ("black", &[(Axis::Black, 1.0)]),
    ("cat", &[(Axis::Cat, 1.0)]),
    ("does", &[(Axis::Auxiliary, 1.0)]),
    ("not", &[(Axis::Not, 1.0)]),
    ("sleep", &[(Axis::Sleep, 1.0)]),
    (".", &[(Axis::End, 1.0)]),
];

/// `[token, axis]`, every row of this length.
fn embed(words: &[Word], length: f32) -> Vec<f32> {
    let row = |(_, has): &Word| {
        let mut row = [0.0f32; AXES];
        has.iter().for_each(|&(axis, much)| row[axis as usize] = much);
        let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.map(|x| x * length / norm)
    };
    words.iter().flat_map(row).collect()
}

fn main() -> ExitCode {
    match cross_attention(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("cross_attention: the GPU disagrees with the CPU reference");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("cross_attention: {error}");
            ExitCode::from(2)
        }
    }
}

/// True if the GPU agrees with the CPU.
fn cross_attention(args: &Args) -> Result<bool, Error> {
    let mut attention = CrossAttention { gpu: Gpu::new()?, error: 0.0 };
    let (q, kv) = (embed(&DECODER, args.length), embed(&ENCODER, args.length));
    println!("The decoder has written  {}", sentence(&DECODER));
    println!("The encoder has read     {}", sentence(&ENCODER));

    let output = attention.run(&q, &kv)?;
    println!("\nQueries from the first, keys and values from the second. Weights in percent:\n");
    print_weights(&output);
    println!();
    println!("\"noir\" comes third and \"black\" second: order does not matter to attention.");
    println!("\"ne\" and \"pas\" both ask for \"not\"; no word asks for \".\", and none has to.");
    println!("There is no causal mask: the whole of the encoder's sentence is there already.");

    println!("\nThe same with more tokens:");
    let (twice_q, twice_kv) = ([&q[..]; 2].concat(), [&kv[..]; 2].concat());
    let first = scores(&q, &kv);
    let mut tell = |name: &str, q: &[f32], kv: &[f32]| -> Result<Output, Error> {
        let [queries, keys] = [q, kv].map(|x| x.len() / AXES);
        let (count, shape) = (scores(q, kv), format!("{queries} x {keys}"));
        let times = count as f64 / first as f64;
        println!("  {name:30} {shape:>7} scores = {count:3}   x {times:.1}");
        attention.run(q, kv)
    };
    tell("as above", &q, &kv)?;
    tell("the decoder's sentence twice", &twice_q, &kv)?;
    let diluted = tell("the encoder's sentence twice", &q, &twice_kv)?;
    tell("both", &twice_q, &twice_kv)?;
    let step = tell("only the decoder's last word", &q[q.len() - AXES..], &kv)?;

    let last = &output.o[output.o.len() - AXES..];
    let halved = most(weights(&diluted)) / most(weights(&output));
    println!("\nEvery key twice: each weight is x {halved:.1}, and the outputs stay the same:");
    println!("  largest difference {:.1e}", difference(&diluted.o, &output.o));
    println!("One word at a time, as a decoder writes, costs one row of scores:");
    println!("  largest difference to the last row above {:.1e}", difference(&step.o, last));
    println!("\nGPU against the CPU reference: largest error {:.1e}", attention.error);
    Ok(attention.error <= TOLERANCE)
}

struct CrossAttention {
    gpu: Gpu,
    /// Largest absolute error against the CPU reference so far.
    error: f64,
}

impl CrossAttention {
    /// One head; keys and values are the same rows.
    fn run(&mut self, q: &[f32], kv: &[f32]) -> Result<Output, Error> {
        let (problem, inputs) = (problem(q, kv), Inputs::new(q, kv, kv));
        let output = self.gpu.attention(&problem, inputs)?;
        let expected = cpu::attention(&problem, inputs)?;
        let errors =
            [difference(&output.o, &expected.o), difference(weights(&output), weights(&expected))];
        self.error = errors.into_iter().fold(self.error, f64::max);
        Ok(output)
    }
}

fn problem(q: &[f32], kv: &[f32]) -> Problem {
    let [queries, keys] = [q, kv].map(|x| (x.len() / AXES) as u32);
    Problem::new(Shape::self_attention(1, 1, queries, AXES as u32).kv_len(keys)).weights()
}

/// How many scores there are.
fn scores(q: &[f32], kv: &[f32]) -> u64 {
    problem(q, kv).scores().elements(Operand::Scores)
}

fn weights(output: &Output) -> &[f32] {
    output.weights.as_deref().unwrap_or_default()
}

fn most(weights: &[f32]) -> f32 {
    weights.iter().copied().fold(0.0, f32::max)
}

fn difference(a: &[f32], b: &[f32]) -> f64 {
    let each = a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).abs());
    each.fold(0.0, |most, x| if x.is_nan() { f64::INFINITY } else { most.max(x) })
}

fn sentence(words: &[Word]) -> String {
    words.iter().map(|word| word.0).collect::<Vec<_>>().join(" ")
}

/// A row a query, a column a key, and what the query reads most.
fn print_weights(output: &Output) {
    let keys = ENCODER.map(|(key, _)| format!("{key:>6}")).concat();
    println!("  {:6}{keys}   reads most", "");
    for ((query, _), row) in DECODER.iter().zip(weights(output).chunks(ENCODER.len())) {
        let cells: String = row.iter().map(|p| format!("{:>6.0}", 100.0 * p)).collect();
        let largest = most(row);
        let key =
            ENCODER.iter().zip(row).find(|(_, p)| **p == largest).map_or("", |(key, _)| key.0);
        println!("  {query:6}{cells}   {key:6} {}", bar(largest));
    }
}

/// A full bar is a weight of 1.
fn bar(weight: f32) -> String {
    "#".repeat((20.0 * weight).round() as usize)
}
