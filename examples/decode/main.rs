//! A decoder's attention stack that generates: a prompt at once, then token after token over caches
//! that stay on the GPU. How fast, how the cost grows with the cache, and what each storage type of
//! the cache takes and costs in accuracy.
//!
//! `cargo run --release --example decode`

mod layer;
#[path = "../scaling/pen.rs"]
#[allow(dead_code, reason = "shared with `scaling`, which draws other things")]
mod pen;
mod plot;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use run::Run;
use wgpu_attention::{Element, Gpu};

/// Generates tokens with a stack of attention layers over paged caches.
///
/// Queries, keys and values are drawn from normal(0, 1) in place of a model's projections. A step is
/// one append (keys and queries turned by rotary embedding) and one attention a layer, recorded into
/// one encoder and submitted once; nothing is planned or bound after the first. The last step's
/// outputs are compared with the definition in f64 over f32 keys and values.
///
/// Exit code: 0 if all went well, 1 if not, with the reason.
#[derive(Parser)]
pub struct Args {
    /// Query heads
    #[arg(long, value_name = "H", default_value_t = 32)]
    heads: u32,
    /// Heads of keys and values
    #[arg(long, value_name = "H", default_value_t = 8)]
    kv_heads: u32,
    /// Head dimension
    #[arg(long, value_name = "D", default_value_t = 64)]
    dim: u32,
    /// Layers, each with a cache of its own
    #[arg(long, value_name = "N", default_value_t = 2)]
    layers: u32,
    /// Tokens of the prompt
    #[arg(long, value_name = "N", default_value_t = 512)]
    prefill: u32,
    /// Tokens generated
    #[arg(long, value_name = "N", default_value_t = 1000)]
    steps: u32,
    /// Tokens of a page
    #[arg(long, value_name = "N", default_value_t = 16)]
    page: u32,
    /// Storage types of the cache, separated by commas
    #[arg(long, value_name = "TYPES", value_delimiter = ',', default_value = "f32,f16,bf16,int8")]
    types: Vec<Stored>,
    /// Draws milliseconds per step over the cached tokens, to FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Checks every step against the definition, with a small stack unless sizes are given otherwise
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stored {
    F32,
    F16,
    Bf16,
    Int8,
}

impl Stored {
    fn element(self) -> Element {
        match self {
            Stored::F32 => Element::F32,
            Stored::F16 => Element::F16,
            Stored::Bf16 => Element::Bf16,
            Stored::Int8 => Element::Int8,
        }
    }

    /// The largest relative RMS error allowed.
    fn allowed(self) -> f64 {
        match self {
            Stored::F32 => 1e-5,
            Stored::F16 => 1e-3,
            Stored::Bf16 => 1e-2,
            Stored::Int8 => 2e-2,
        }
    }
}

fn main() -> ExitCode {
    let mut args = Args::parse();
    if args.check {
        let small = |size: &mut u32, usual, less| {
            if *size == usual {
                *size = less;
            }
        };
        small(&mut args.heads, 32, 4);
        small(&mut args.kv_heads, 8, 2);
        small(&mut args.prefill, 512, 24);
        small(&mut args.steps, 1000, 40);
    }
    match report(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("decode: {error}");
            ExitCode::FAILURE
        }
    }
}

fn report(args: &Args) -> Result<bool, Box<dyn std::error::Error>> {
    if args.steps == 0 || args.layers == 0 || args.types.is_empty() {
        return Err("nothing to do: steps, layers and types are at least 1".into());
    }
    let gpu = Gpu::new()?;
    let info = gpu.device().adapter_info();
    println!("{}, {} {}", info.name, info.backend, info.driver_info);
    let Args { heads, kv_heads, dim, layers, prefill, steps, page, .. } = args;
    println!(
        "{layers} layers of {heads} query heads over {kv_heads} of {dim}, pages of {page} tokens: \
         {prefill} tokens at once, then {steps} one by one\n"
    );
    let mut runs = Vec::new();
    for &stored in &args.types {
        runs.push((stored, Run::new(&gpu, args, stored)?));
    }
    println!(
        "{:>5} {:>11} {:>9} {:>10} {:>7} {:>12}",
        "type", "prefill ms", "tokens/s", "cache MB", "of f32", "RMS error"
    );
    let mut good = true;
    for (stored, run) in &runs {
        let name = format!("{stored:?}").to_lowercase();
        // Without the first step, for which drivers compile.
        let timed = &run.milliseconds[run.milliseconds.len().min(2) - 1..];
        let rate = 1e3 * timed.len() as f64 / timed.iter().sum::<f64>();
        let (megabytes, share) = (run.bytes as f64 / 1e6, run.share_of_f32);
        let error = run.error;
        println!(
            "{name:>5} {:>11.1} {rate:>9.1} {megabytes:>10.2} {share:>7.3} {error:>12.2e}",
            run.prefill
        );
        if error.is_nan() || error > stored.allowed() {
            println!("      more than the {:.0e} that is allowed", stored.allowed());
            good = false;
        }
        if let Some(worst) = run.worst.filter(|_| *stored == Stored::F32) {
            println!("      every step within {worst:.1e} of the definition");
            good &= worst <= 1e-5;
        }
    }
    println!("\nMilliseconds per step, median of each tenth:\n");
    let tenth = (*steps as usize).div_ceil(10);
    print!("{:>7}", "tokens");
    runs.iter().for_each(|(stored, _)| print!(" {:>7}", format!("{stored:?}").to_lowercase()));
    println!();
    for first in (0..*steps as usize).step_by(tenth) {
        print!("{:>7}", *prefill as usize + (first + tenth).min(*steps as usize));
        for (_, run) in &runs {
            print!(
                " {:>7.2}",
                median(&run.milliseconds[first..run.milliseconds.len().min(first + tenth)])
            );
        }
        println!();
    }
    if let Some(path) = &args.plot {
        plot::draw(path, *prefill, &runs)?;
        println!("\ndrawn: {}", path.display());
    }
    Ok(good)
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
