//! Measures this crate on a card, and says of each answer whether it is right.
//!
//! `scripts/gpu-check.sh`, or `cargo run --release --example gpu_check` for the table alone.

mod answer;
mod args;
mod calls;
mod card;
mod case;
mod clock;
mod facts;
mod file;
mod line;
mod pace;
mod peak;
mod report;
mod shaders;
mod table;
mod torch;

use std::process::ExitCode;

use args::Args;
use card::Card;
use clap::Parser;
use file::Files;
use line::Peaks;
use pace::Pace;
use report::Report;
use table::Table;
use torch::Torch;

fn main() -> ExitCode {
    match check(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("gpu_check: {why}");
            ExitCode::from(2)
        }
    }
}

/// Whether every answer was right.
fn check(args: &Args) -> Result<bool, String> {
    let pace = Pace::new(args.seconds);
    let adapter = card::adapter()?;
    if facts::is_software(&adapter) && !args.small {
        let name = adapter.get_info().name;
        return Err(format!("{name} is no GPU: install the card's driver, or say --small"));
    }
    let card = Card::open(&adapter)?;
    let mut facts = facts::all(&adapter, &card);
    if args.facts {
        facts.iter().for_each(|(name, value)| println!("{name}: {value}"));
        return Ok(true);
    }
    let given = args.notes.iter().filter_map(|note| note.split_once('='));
    facts.extend(given.map(|(name, value)| (name.into(), value.into())));
    let (peaks, lines, notes) = (Peaks::default(), vec![], vec![]);
    let mut report = Report { facts, peaks, lines, notes, finished: false };
    let files = Files::open(&args.out, &report)?;

    // It loads while peaks are measured.
    let torch = Torch::start(&args.torch, args.torch_cpu);
    (report.peaks, report.notes) = peak::all(&card, args.small);
    let torch = torch.and_then(|torch| torch.about(pace.left() / 4).map(|about| (torch, about)));
    let torch = match torch {
        Ok((torch, about)) => {
            report.notes.push(about);
            Some(torch)
        }
        Err(why) => {
            report.notes.push(format!("no PyTorch lines: {why}"));
            None
        }
    };
    report.peaks().iter().chain(&report.notes).for_each(|line| println!("{line}"));

    let cases = case::by_importance(args.small);
    let small = args.small;
    let mut table = Table { card, small, torch, pace: &pace, report: &mut report, files: &files };
    table.fill(&cases)?;
    report.finished = true;
    report.notes.push(format!("{} s in all", pace.elapsed().as_secs()));
    files.write(&report)?;
    println!("\n{}, {} s: {}", report.verdict(), pace.elapsed().as_secs(), args.out.display());
    Ok(report.is_good())
}
