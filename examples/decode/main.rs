//! A decoder's attention stack that generates: a prompt at once, then token after token over caches
//! that stay on the GPU. How fast, how the cost grows with the cache, and what each storage type of
//! the cache takes and costs in accuracy.
//!
//! `cargo run --release --bin decode`

mod args;
mod device;
mod layer;
mod plot;
mod report;
mod run;
mod twin;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use args::Args;
use clap::Parser;
use run::Run;
use wgpu_attention::Gpu;

fn main() -> ExitCode {
    match decode(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("decode: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every check passed.
fn decode(args: &Args) -> Result<bool, Box<dyn Error>> {
    if let Some(file) = &args.plot {
        plot::check(file)?;
    }
    let sizes = args.sizes();
    let gpu = Gpu::new()?;
    gpu.device().on_uncaptured_error(Arc::new(|error| {
        eprintln!("decode: wgpu: {error}");
        std::process::exit(1);
    }));
    let info = gpu.device().adapter_info();
    let adapter = format!("{} ({:?})", info.name, info.backend);
    let stack = format!(
        "{} layers of {} query heads over {} kv heads of {}, pages of {} tokens",
        sizes.layers, sizes.heads, sizes.kv_heads, sizes.dim, sizes.page
    );
    println!("adapter  {adapter}");
    println!("stack    {stack}");
    println!("tokens   {} at once, then {} one by one\n", sizes.prefill, sizes.steps);

    let run = |&element| Run::new(&gpu, sizes, element, args.check);
    let runs = args.types.0.iter().map(run).collect::<Result<Vec<_>, _>>()?;
    report::types(&sizes, &runs);
    report::growth(&sizes, &runs);
    let good = report::checks(&sizes, &runs, args.check);
    if let Some(file) = &args.plot {
        plot::draw(file, sizes.prefill, &runs, &format!("{stack}, on {adapter}"))?;
        eprintln!("wrote {}", file.display());
    }
    Ok(good)
}
