//! Attention on files: safetensors in, safetensors out, values checked.
//!
//! `cargo run --example attend -- --check tests/data/cases/everything.safetensors`

mod attend;
#[path = "../six_tokens/backend.rs"]
mod backend;
mod case;
mod check;
mod file;
mod json;
mod params;
mod table;
mod tensor;
mod write;

use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attend::{Made, Part};
use backend::{Backend, Choice};
use case::{Case, Order};
use check::{Check, Finding};
use clap::Parser;
use clap::builder::{PathBufValueParser, TypedValueParser};
use file::File;
use indicatif::{ProgressBar, ProgressStyle};
use params::Flags;
use table::Table;
use write::Folder;

/// Attention on files: output, LSE, weights and scores of the q, k, v in each.
///
/// A FILE is safetensors. Of its tensors only q, k and v must be there:
///
///   q, k, v        [batch, head, token, dim] in F32, F16 or BF16, k and v in the same;
///                  several heads of q may share one of k and v
///   mask           broadcast from the right to [batch, head, query, key];
///                  BOOL: true = may attend; a float type: added, -inf excludes
///   alibi_slopes, sinks            [head of q], a float type
///   q_lens, kv_lens                [batch], an integer type: tokens that exist
///   cu_seqlens_q, cu_seqlens_kv    [sequences + 1], an integer type: where each packed
///                                  sequence begins, and the last one's end; batch is 1
///   out, lse, weights, scores      what --check compares with; out_f32: as right as out
///
/// Its metadata may have, as JSON:
///
///   params          scale, softcap, causal (none, top_left, bottom_right), shift,
///                   window_left, window_right (-1: open), alibi (true: slopes must be there)
///   suggested_atol  by how much each result may be off, else 1e-5 and the rounding to F32;
///                   out in F16 or BF16 also by its own rounding
///
/// A NaN in the expected out must be NaN; on a GPU such a row may be anything. The LSE of
/// such a row is not compared.
///
/// A name that the header, the metadata or JSON in it gives twice is refused.
///
/// Exit code: 0 if all is well; 1 if a value is off; 2 if a file could not be read, computed
/// or written, whatever the others gave.
#[derive(Parser)]
#[command(verbatim_doc_comment)]
struct Args {
    /// Files to compute
    #[arg(required = true, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(path))]
    files: Vec<PathBuf>,
    /// Write results to DIR, under the file's name: out in the type of q, the rest F32
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(path))]
    out: Option<PathBuf>,
    /// Results to write: out, lse, weights, scores
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "out", value_parser = part)]
    want: Vec<Part>,
    /// Compare with the expected tensors in the file
    #[arg(long)]
    check: bool,
    /// Largest absolute error allowed, in place of the file's tolerances
    #[arg(long, value_name = "ERROR", requires = "check", allow_negative_numbers = true)]
    #[arg(value_parser = tolerance)]
    atol: Option<f64>,
    /// Where to compute [default: gpu, if there is one]
    #[arg(long)]
    backend: Option<Choice>,
    /// Axes of q, k, v and out in the file: batch, head, token (n), dim
    #[arg(long, value_name = "AXES", default_value = "bhnd")]
    layout: Order,
    #[command(flatten)]
    flags: Flags,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(Verdict { refused: 0, off: 0, .. }) => ExitCode::SUCCESS,
        Ok(Verdict { refused: 0, .. }) => ExitCode::FAILURE,
        Ok(_) => ExitCode::from(2),
        Err(why) => {
            tell(&why.to_string());
            ExitCode::from(2)
        }
    }
}

/// How many results were right and wrong, and how many files gave none.
#[derive(Default)]
struct Verdict {
    good: usize,
    off: usize,
    refused: usize,
}

fn run(args: &Args) -> Result<Verdict, Box<dyn Error>> {
    let folder = args.out.as_deref().map(|out| Folder::open(out, &args.files)).transpose()?;
    let backend = Backend::open(args.backend)?;
    let table = Table::new(&args.files, args.check);
    let bar = progress_bar(args.files.len());
    let mut verdict = Verdict::default();
    let print = |line: &str| bar.suspend(|| writeln!(stdout(), "{line}"));
    print(&table.header())?;
    for path in &args.files {
        bar.set_message(path.display().to_string());
        match one(args, &backend, folder.as_ref(), path) {
            Ok(results) => {
                for (made, finding) in &results {
                    print(&table.line(path, made, finding.as_ref()))?;
                    match finding.as_ref().map(Finding::is_good) {
                        Some(false) => verdict.off += 1,
                        None if args.check => {}
                        _ => verdict.good += 1,
                    }
                }
            }
            Err(why) => {
                verdict.refused += 1;
                bar.suspend(|| tell(&format!("{}: {why}", path.display())));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let Verdict { good, off, refused } = verdict;
    let said =
        if args.check { format!("{good} right, {off} off") } else { format!("{good} computed") };
    writeln!(stdout(), "{said} by {backend}; {refused} of {} files refused", args.files.len())?;
    Ok(verdict)
}

type Results = Vec<(Made, Option<Finding>)>;

/// Reads, computes, writes and checks one file.
fn one(
    args: &Args,
    backend: &Backend,
    folder: Option<&Folder>,
    path: &Path,
) -> Result<Results, String> {
    let file = File::open(path)?;
    let case = Case::new(&file, args.layout, args.flags)?;
    let check =
        args.check.then(|| Check::new(&file, &case, args.atol, backend.0.is_some())).transpose()?;
    let checked = |part| check.iter().flat_map(Check::parts).any(|of| of == part);
    let wanted = |part| (folder.is_some() || !args.check) && args.want.contains(&part);
    let parts = Part::ALL.into_iter().filter(|&part| wanted(part) || checked(part));
    let parts: Vec<Part> = parts.collect();
    let made = case.attend(backend, &parts)?;
    if let Some(folder) = folder {
        let wanted = made.iter().filter(|made| args.want.contains(&made.part));
        folder.write(path, &wanted.collect::<Vec<_>>())?;
    }
    let finding = |made: Made| {
        let finding = check.as_ref().map(|check| check.finding(&made, &case)).transpose()?;
        Ok((made, finding.flatten()))
    };
    made.into_iter().map(finding).collect()
}

/// One line on stderr, whatever a file made of it.
fn tell(why: &str) {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = why.chars().map(plain).take(1000).collect();
    let _ = writeln!(stderr(), "attend: {line}"); // Nobody reads it: nothing to do.
}

/// Progress on stderr, where that is a terminal.
fn progress_bar(files: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {bar:30} {pos}/{len}  {msg}");
    let bar = ProgressBar::new(files as u64);
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn path(path: PathBuf) -> Result<PathBuf, &'static str> {
    if path.as_os_str() == "-" { Err("need a path, not a stream") } else { Ok(path) }
}

fn part(text: &str) -> Result<Part, String> {
    match Part::ALL.into_iter().find(|part| part.name() == text) {
        Some(part) => Ok(part),
        None if ["dq", "dk", "dv"].contains(&text) => Err("no gradients yet".into()),
        None => Err("need out, lse, weights or scores".into()),
    }
}

fn tolerance(text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok().filter(|&most: &f64| most >= 0.0);
    parsed.ok_or_else(|| "need a number from 0".into())
}
