//! What attention costs as the tokens double: time, rate and memory of the CPU reference, the
//! staged and the fused kernels, as a table, as CSV, as a picture.
//!
//! `cargo run --release --bin scaling -- --plot scaling.svg`

mod chart;
mod measure;
mod table;

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use measure::{Case, Cell, Line, METHODS, Method};
use wgpu_attention::{Gpu, Problem, Shape};

/// Measures attention at 128, 256, ... 4096 tokens: CPU reference, staged, fused.
///
/// Each answer is checked on rows spread over all heads before it is timed. Times are medians of a
/// few runs; on the GPU a run is recording, submitting and waiting, with the operands already
/// there. Memory is what a method needs beyond Q, K and V: its output, and working memory.
///
/// Exit code: 0 if all went well, 1 if not, with the reason.
#[derive(Parser)]
struct Args {
    /// Tokens of the first line
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = at_least_1())]
    from: u32,
    /// No line has more tokens than this
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = at_least_1())]
    to: u32,
    /// Heads
    #[arg(long, value_name = "H", default_value_t = 2, value_parser = at_least_1())]
    heads: u32,
    /// Head dimension
    #[arg(long, value_name = "D", default_value_t = 64, value_parser = at_least_1())]
    dim: u32,
    /// No token sees a later one
    #[arg(long)]
    causal: bool,
    /// Leave these out, separated by commas
    #[arg(long, value_name = "METHODS", value_delimiter = ',')]
    skip: Vec<Method>,
    /// The CPU reference stops here: it is the slowest
    #[arg(long, value_name = "N", default_value_t = 2048)]
    cpu_to: u32,
    /// Seconds spent on the repeated runs behind one time, which is at least one run
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    budget: f64,
    /// Comma-separated values to a file; without FILE to stdout, instead of the table
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    csv: Option<PathBuf>,
    /// A picture of the table, SVG or PNG by the file's name
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn at_least_1() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

impl Args {
    fn problem(&self, tokens: u32) -> Problem {
        let shape = Shape::self_attention(1, self.heads, tokens, self.dim);
        let problem = Problem::new(shape);
        if self.causal { problem.causal() } else { problem }
    }

    fn tokens(&self) -> Vec<u32> {
        let doubled = std::iter::successors(Some(self.from), |n| n.checked_mul(2));
        doubled.take_while(|&n| n <= self.to).collect()
    }

    /// Why a method does not run at so many tokens, if it does not.
    fn reason(&self, method: Method, tokens: u32) -> Option<&'static str> {
        match method {
            _ if self.skip.contains(&method) => Some("skipped"),
            Method::Cpu if tokens > self.cpu_to => Some("beyond --cpu-to"),
            _ => None,
        }
    }

    /// Of q . k and of p v, a multiply-add counted as two.
    fn operations(&self, tokens: u32) -> f64 {
        let n = f64::from(tokens);
        let scores = if self.causal { n * (n + 1.0) / 2.0 } else { n * n };
        4.0 * f64::from(self.heads) * f64::from(self.dim) * scores
    }

    /// "2 heads of 64, causal"
    fn words(&self) -> String {
        let heads = if self.heads == 1 { "head" } else { "heads" };
        let causal = if self.causal { ", causal" } else { "" };
        format!("{} {heads} of {}{causal}", self.heads, self.dim)
    }
}

fn main() -> ExitCode {
    match scaling(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scaling: {error}");
            ExitCode::FAILURE
        }
    }
}

fn scaling(args: &Args) -> Result<(), Box<dyn Error>> {
    let tokens = args.tokens();
    if tokens.is_empty() {
        return Err(format!("--from {} lies above --to {}", args.from, args.to).into());
    }
    if METHODS.iter().all(|method| args.skip.contains(method)) {
        return Err("--skip leaves nothing".into());
    }
    if let Some(file) = &args.plot {
        chart::check(file, tokens.len())?;
    }
    let gpu = Gpu::new()?;
    gpu.device().on_uncaptured_error(Arc::new(|error| {
        eprintln!("scaling: wgpu: {error}");
        std::process::exit(1);
    }));
    let info = gpu.device().adapter_info();
    let adapter = format!("{} ({:?})", info.name, info.backend);
    let print_table = args.csv.as_ref().is_none_or(|file| file.as_os_str() != "-");
    if print_table {
        println!("adapter  {adapter}");
        println!("problem  {}", args.words());
        println!("\n{}", table::header());
    }

    let bar = progress_bar(&tokens);
    let mut lines: Vec<Line> = Vec::new();
    for &n in &tokens {
        let line = measure(&gpu, args, n, &bar)?;
        if print_table {
            bar.suspend(|| println!("{}", table::Row { line: &line, before: lines.last() }));
        }
        lines.push(line);
    }
    bar.finish_and_clear();

    if print_table {
        println!("\n{}", table::Summary { lines: &lines, limits: &gpu.device().limits() });
    }
    if let Some(file) = &args.csv {
        let csv = table::csv(&lines, args.causal);
        match print_table {
            true => {
                std::fs::write(file, csv).map_err(|error| format!("{}: {error}", file.display()))?
            }
            false => std::io::stdout().write_all(csv.as_bytes())?,
        }
    }
    if let Some(file) = &args.plot {
        let note = format!("{}, on {adapter}", args.words());
        chart::draw(file, &lines, &note)?;
        eprintln!("wrote {}", file.display());
    }
    Ok(())
}

/// All methods at one number of tokens.
fn measure(gpu: &Gpu, args: &Args, n: u32, bar: &ProgressBar) -> Result<Line, Box<dyn Error>> {
    bar.set_message(format!("{n} tokens: numbers"));
    let case = Case::new(args.problem(n))?;
    let mut cells = Vec::new();
    for method in METHODS {
        bar.set_message(format!("{n} tokens: {}", method.name()));
        cells.push(match args.reason(method, n) {
            Some(reason) => Cell::NotRun(reason),
            None => case.measure(gpu, method, args.budget)?,
        });
        bar.inc(work(n));
    }
    let operations = args.operations(n);
    Ok(Line { problem: case.problem, operations, cells })
}

/// Progress on stderr, where that is a terminal.
fn progress_bar(tokens: &[u32]) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {bar:30} {elapsed}  {msg}");
    let all: u64 = tokens.iter().map(|&n| work(n)).sum();
    let bar = ProgressBar::new(METHODS.len() as u64 * all);
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn work(tokens: u32) -> u64 {
    u64::from(tokens) * u64::from(tokens)
}
