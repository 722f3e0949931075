//! Attention inside another program: its own device, its own passes before and after, one encoder,
//! one submit. The weights become a picture without ever leaving the GPU as numbers.
//!
//! `cargo run --release --bin embed -- --tokens sentence --layer 5 --head 11 --out heat.png`

mod colour;
mod picture;
mod program;
mod source;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use picture::Style;
use program::{Heat, Program};
use source::Source;

/// Draws attention weights as a heat map, straight from the GPU buffer they are computed in.
///
/// The program has a device of its own with WebGPU's default limits. In one encoder it records a
/// compute pass of its own that makes queries, keys and values, attention with its weights, a
/// render pass of its own that draws the weights into a texture, and a copy of the texture. Tokens
/// and title are drawn around it on the CPU.
///
/// Exit code: 0 if each cell has the colour of the CPU reference's weight, 1 if not or if
/// something went wrong, with the reason.
#[derive(Parser)]
struct Args {
    /// Whose attention
    #[arg(long, value_enum, default_value = "sentence")]
    tokens: Tokens,
    /// Layer of the sentence's model: 0, 2 or 5
    #[arg(long, value_name = "N", default_value_t = 5)]
    layer: u32,
    /// Head of that layer, from 0 to 11
    #[arg(long, value_name = "N", default_value_t = 11)]
    head: u32,
    /// No token sees a later one
    #[arg(long)]
    causal: bool,
    /// The picture
    #[arg(long, value_name = "FILE.png", default_value = "attention.png")]
    out: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Tokens {
    /// The lesson's: The cat sat on the mat
    Six,
    /// A real model's: The animal didn't cross the street because it was too tired
    Sentence,
}

fn main() -> ExitCode {
    match embed(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("embed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn embed(args: &Args) -> Result<(), String> {
    if args.out.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("png")) {
        return Err(format!("{}: the picture is a .png", args.out.display()));
    }
    let mut source = match args.tokens {
        Tokens::Six => Source::six(),
        Tokens::Sentence => Source::sentence(args.layer, args.head)?,
    };
    source.causal = args.causal;
    let program = pollster::block_on(Program::new())?;
    println!("adapter  {}", program.adapter());
    let style = Style::of(&source);
    let heat = program.run(&source, style.cell, &style.digits()?)?;

    println!("\none encoder, one submit:");
    let ours = |name: &str, what: &str| println!("  {name:10} {what}");
    ours(source.pass.name, "this program's compute pass: queries, keys and values");
    for dispatch in &heat.plan.dispatches {
        ours(dispatch.kernel, "attention");
    }
    ours("heat", "this program's render pass: reads the weights, writes a texture");
    ours("copy", "of the texture, to be saved");

    let weights = source.weights().map_err(|error| error.to_string())?;
    let cells = check(&source, &heat, style.cell, &weights)?;
    println!("\n{cells} cells, each in the colour of the CPU reference's weight");
    println!("{}", source.finding(&weights));
    picture::save(&args.out, &source, &heat, &style, &weights)?;
    println!("wrote {}", args.out.display());
    Ok(())
}

/// Compares a pixel of each cell with the CPU reference; as many cells as there are.
fn check(source: &Source, heat: &Heat, cell: u32, weights: &[Vec<f64>]) -> Result<usize, String> {
    let colours = colour::map();
    let mut cells = 0;
    for (i, row) in (0..).zip(weights) {
        for (j, &weight) in (0..).zip(row) {
            if source.causal && j > i {
                continue;
            }
            // Near the corner, where there is no digit.
            let [x, y] = [j, i].map(|at: u32| at * cell + 2);
            let got = heat.pixels[(y * heat.side + x) as usize];
            // The nearest step may be either neighbour's.
            let step = colour::step(weight);
            let most = (step + 1).min(colours.len() - 1);
            if !colours[step.saturating_sub(1)..=most].contains(&got) {
                let want = colours[step];
                return Err(format!("query {i}, key {j}: {got:?} drawn for {want:?}"));
            }
            cells += 1;
        }
    }
    Ok(cells)
}
