//! Attention side by side: this library and others on the same machine, interleaved in one run.
//!
//! `cargo run --release -- prefill`, `cargo run --release -- decode`

#[cfg(feature = "burn")]
mod burn;
#[cfg(feature = "candle")]
mod candle;
mod case;
mod compare;
mod machine;
mod ours;
mod python;
mod report;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use wgpu_attention::Gpu;

use case::{Case, Kind};

/// Medians of interleaved rounds, and how much faster or slower than this library each peer is.
///
/// Before anything is timed, rows of each answer are compared with the definition in f64. Exit
/// code: 0 if all answers are right, 1 if not.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Self-attention of a whole sequence: as many queries as keys
    Prefill {
        /// Tokens
        #[arg(long, value_delimiter = ',', default_value = "512,1024,2048")]
        tokens: Vec<u32>,
        /// No token sees a later one
        #[arg(long)]
        causal: bool,
        /// Rounds that are timed
        #[arg(long, default_value_t = 11)]
        rounds: usize,
        #[command(flatten)]
        options: Options,
    },
    /// A few query rows against a resident cache of keys
    Decode {
        /// Query rows, each of which sees every key
        #[arg(long, value_delimiter = ',', default_value = "1,4,16")]
        rows: Vec<u32>,
        /// Cached keys
        #[arg(long, default_value_t = 4096)]
        keys: u32,
        /// Rounds that are timed
        #[arg(long, default_value_t = 31)]
        rounds: usize,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(clap::Args)]
struct Options {
    /// Query heads, each with keys and values of its own
    #[arg(long, default_value_t = 8)]
    heads: u32,
    /// Head dimension
    #[arg(long, default_value_t = 64)]
    dim: u32,
    /// Tables in Markdown
    #[arg(long)]
    markdown: bool,
    /// A Python interpreter: adds PyTorch and onnxruntime, whichever it has
    #[arg(long)]
    python: Option<String>,
}

fn main() -> ExitCode {
    match run(Args::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every answer was right.
fn run(command: Command) -> Result<bool, String> {
    let (cases, rounds, options) = match command {
        Command::Prefill { tokens, causal, rounds, options } => {
            let Options { heads, dim, .. } = options;
            let case = |n: u32| Case::new(Kind::Prefill { causal }, heads, [n, n], dim);
            (tokens.into_iter().map(case).collect::<Vec<_>>(), rounds, options)
        }
        Command::Decode { rows, keys, rounds, options } => {
            let Options { heads, dim, .. } = options;
            let case = |rows: u32| Case::new(Kind::Decode, heads, [rows, keys], dim);
            (rows.into_iter().map(case).collect::<Vec<_>>(), rounds, options)
        }
    };
    let gpu = Gpu::new().map_err(|error| error.to_string())?;
    let python = options.python.as_deref().map(python::Python::start).transpose()?;
    machine::print(&gpu, python.as_ref(), options.markdown);
    let mut good = true;
    for case in &cases {
        let (rows, right) = compare::compare(&gpu, python.as_ref(), case, rounds.max(1))?;
        report::print(case, &rows, options.markdown);
        good &= right;
    }
    Ok(good)
}
