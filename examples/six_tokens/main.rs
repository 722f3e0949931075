//! The lesson's demo, "The cat sat on the mat", step by step, with the lesson's own figures.
//!
//! `cargo run --example six_tokens` shows every query; `--query sat` only one.

mod backend;

use std::error::Error;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

use backend::{Backend, Choice};
use clap::Parser;
use indicatif::ProgressBar;
use wgpu_attention::{Inputs, Problem};
use wgpu_attention_support::lesson::demo::Demo;
use wgpu_attention_support::lesson::page::page;
use wgpu_attention_support::lesson::steps::Form;
use wgpu_attention_support::lesson::tokens::Tokens;

/// Attention over "The cat sat on the mat", step by step, in two dimensions.
///
/// A GPU computes scores and weights with the staged kernels and outputs with the fused one.
#[derive(Parser)]
struct Args {
    /// Only this query: a token as written, or its number from 0
    #[arg(long, value_name = "TOKEN")]
    query: Option<String>,
    /// Leave out the division by sqrt(2)
    #[arg(long)]
    no_scale: bool,
    /// No token sees a later one
    #[arg(long)]
    causal: bool,
    /// Where to compute: on the GPU, if there is one, unless told otherwise
    #[arg(long)]
    backend: Option<Choice>,
}

fn main() -> ExitCode {
    match show(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("six_tokens: {why}");
            ExitCode::FAILURE
        }
    }
}

fn show(args: &Args) -> Result<(), Box<dyn Error>> {
    let tokens = Tokens::demo(&Demo::load());
    let query = args.query.as_deref().map(|query| find(&tokens.words, query)).transpose()?;
    let form = Form { divided: !args.no_scale, causal: args.causal };

    let backend = Backend::open(args.backend)?;
    let spinner = ProgressBar::new_spinner().with_message(format!("computing on {backend}"));
    spinner.enable_steady_tick(Duration::from_millis(100));
    let attend = |problem: &Problem, inputs: Inputs<'_>| backend.attend(problem, inputs);
    let page = page(&tokens, query, form, &attend);
    spinner.finish_and_clear();
    writeln!(stdout(), "{}\n\nComputed by {backend}.", page?)?;
    Ok(())
}

/// A token by its word, else by its number.
fn find(words: &[String], query: &str) -> Result<usize, String> {
    let number = query.parse().ok().filter(|&i| i < words.len());
    words.iter().position(|word| word == query).or(number).ok_or_else(|| {
        format!("no token \"{query}\"; there are {}, or 0 to {}", words.join(", "), words.len() - 1)
    })
}
