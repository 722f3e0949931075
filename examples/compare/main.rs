//! The GPU against the CPU: how far apart their answers are, and how long each takes.
//!
//! `cargo run --release --example compare` takes a real model's attention on the lesson's
//! sentence, then problems of several shapes with normal(0, 1) numbers.

mod cases;
mod measure;

use std::process::ExitCode;
use std::sync::Arc;

use cases::Case;
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use measure::{Line, METHODS};
use wgpu_attention::{Error, Gpu, Problem, Shape};
use wgpu_attention_support::sentence::{CLAIMS, Layer, Sentence, WORD};

/// Compares attention on the GPU, staged and fused, with the CPU reference in f64.
///
/// Errors are the largest over all elements of the output: absolute, and relative to the largest
/// value of the element's row. Times are medians of a few runs: on the GPU recording, submitting
/// and waiting, with the operands already there; on the CPU the reference on all cores.
///
/// Exit code: 0 if every absolute error is within the tolerance, 1 if one is not, 2 if there is
/// no adapter or a problem cannot be computed at all.
#[derive(Parser)]
struct Args {
    /// Only the sentence and two small shapes
    #[arg(long, conflicts_with_all = ["tokens", "heads", "dim", "causal"])]
    quick: bool,
    /// One shape of your own instead of the list: so many tokens [128]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tokens: Option<u32>,
    /// One shape of your own: so many heads [8]
    #[arg(long, value_name = "H", value_parser = clap::value_parser!(u32).range(1..))]
    heads: Option<u32>,
    /// One shape of your own: the head dimension [64]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..))]
    dim: Option<u32>,
    /// One shape of your own: no token sees a later one
    #[arg(long)]
    causal: bool,
    /// Largest absolute error allowed
    #[arg(long, value_name = "ERROR", default_value = "1e-5")]
    tolerance: f64,
    /// Also print what each plan does
    #[arg(long, short)]
    verbose: bool,
}

impl Args {
    /// The caller's own problem, if there is one.
    fn own(&self) -> Option<Problem> {
        let given = [self.tokens, self.heads, self.dim].iter().any(Option::is_some);
        let [tokens, heads, dim] =
            [(self.tokens, 128), (self.heads, 8), (self.dim, 64)].map(|(n, or)| n.unwrap_or(or));
        let problem = Problem::new(Shape::self_attention(1, heads, tokens, dim));
        let problem = if self.causal { problem.causal() } else { problem };
        (given || self.causal).then_some(problem)
    }
}

fn main() -> ExitCode {
    match compare(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::from(2)
        }
    }
}

/// True if all errors are within the tolerance.
fn compare(args: &Args) -> Result<bool, Error> {
    let gpu = Gpu::new()?;
    gpu.device().on_uncaptured_error(Arc::new(|error| {
        eprintln!("compare: wgpu: {error}");
        std::process::exit(2);
    }));
    let info = gpu.device().adapter_info();
    println!("adapter  {} ({:?})", info.name, info.backend);
    println!("driver   {}", format!("{} {}", info.driver, info.driver_info).trim());

    let sentence = Sentence::load();
    let mut verdict = Verdict::new(args.tolerance);
    let cases = match args.own() {
        Some(problem) => {
            gpu.planner().plan(&problem)?; // Too large for the device: said before any work.
            vec![Case::new(problem)?]
        }
        None => {
            tell_sentence(&gpu, &sentence, &mut verdict)?;
            cases::all(&sentence, args.quick)?
        }
    };
    println!("\n{}", measure::header());
    let bar = progress_bar(cases.len());
    for case in &cases {
        let line = Line::measure(&gpu, case, &bar)?;
        verdict.add(&line);
        bar.suspend(|| {
            println!("{line}");
            line.notes(args.verbose).iter().for_each(|note| println!("{note}"));
        });
    }
    bar.finish_and_clear();
    println!(
        "\nproblem: batch x heads x tokens x dim; heads:key heads, tokens:keys, dim:value dim"
    );
    println!("{verdict}");
    Ok(verdict.is_good())
}

/// Where the lesson's word looks, by the GPU's weights.
fn tell_sentence(gpu: &Gpu, sentence: &Sentence, verdict: &mut Verdict) -> Result<(), Error> {
    println!("\n\"{}\"\nin all-MiniLM-L6-v2, by the GPU's weights:", sentence.text);
    for (number, head, token, percent) in CLAIMS {
        let layer = sentence.layer(number);
        let output = gpu.attention(&Layer::problem().weights(), layer.inputs())?;
        let weights = output.weights.unwrap_or_default();
        let (most, weight) = sentence.most(&weights, head);
        let share = (100.0 * weight).round();
        println!(
            "  layer {number}, head {head:2}: \"{WORD}\" attends most to \"{most}\", {share} %"
        );
        let name = format!("weights of layer {number}");
        verdict.check(name, measure::absolute(&weights, &layer.weights));
        if (most, share as u32) != (token, percent) {
            verdict.wrong(format!("layer {number}: expected \"{token}\", {percent} %"));
        }
    }
    Ok(())
}

/// Progress on stderr, where that is a terminal.
fn progress_bar(cases: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {bar:30} {pos}/{len}  {msg}");
    let bar = ProgressBar::new((cases * measure::STEPS) as u64);
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// What was out of tolerance, and what was not computed.
struct Verdict {
    tolerance: f64,
    checked: usize,
    wrong: Vec<String>,
    not_run: Vec<String>,
}

impl Verdict {
    fn new(tolerance: f64) -> Verdict {
        Verdict { tolerance, checked: 0, wrong: Vec::new(), not_run: Vec::new() }
    }

    fn add(&mut self, line: &Line) {
        for (result, method) in line.gpu.iter().zip(METHODS) {
            let name = format!("{}, {}", line.name, measure::name(method));
            match result {
                Ok(figures) => self.check(name, figures.absolute),
                Err(_) => self.not_run.push(name),
            }
        }
    }

    fn check(&mut self, name: String, absolute: f64) {
        self.checked += 1;
        if absolute.is_nan() || self.tolerance.is_nan() || absolute > self.tolerance {
            self.wrong.push(format!("{name}: {absolute:.1e}"));
        }
    }

    fn wrong(&mut self, what: String) {
        self.wrong.push(what);
    }

    fn is_good(&self) -> bool {
        self.checked > 0 && self.wrong.is_empty()
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Verdict { tolerance, checked, wrong, not_run } = self;
        if !not_run.is_empty() {
            writeln!(f, "beyond this device's limits: {}", not_run.join("; "))?;
        }
        match wrong.is_empty() {
            true if *checked == 0 => write!(f, "nothing was computed"),
            true => write!(f, "all within {tolerance:e}"),
            false => write!(f, "not within {tolerance:e}: {}", wrong.join("; ")),
        }
    }
}
