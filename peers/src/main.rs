//! Decode attention side by side: a few query rows against a cache of keys, this library and others
//! on the same machine, interleaved in one run.
//!
//! `cargo run --release`

#[cfg(feature = "burn")]
mod burn;
#[cfg(feature = "candle")]
mod candle;
mod ours;

use std::time::Instant;

use clap::Parser;
use rand::SeedableRng;
use rand_distr::Distribution;
use wgpu_attention::{Gpu, Inputs, Problem, Shape, cpu};

/// Medians of interleaved rounds, and how much faster or slower than this library each peer is.
///
/// A round runs every peer once, from recording to the output on the host; keys and values stay
/// where each keeps them. Before anything is timed, each answer is compared with the definition in
/// f64. Exit code: 0 if all answers are right, 1 if not.
#[derive(Parser)]
struct Args {
    /// Cached keys
    #[arg(long, default_value_t = 4096)]
    keys: u32,
    /// Query rows
    #[arg(long, value_delimiter = ',', default_value = "1,4,16")]
    rows: Vec<u32>,
    /// Query heads
    #[arg(long, default_value_t = 8)]
    heads: u32,
    /// Head dimension
    #[arg(long, default_value_t = 64)]
    dim: u32,
    /// Rounds that are timed
    #[arg(long, default_value_t = 31)]
    rounds: usize,
}

/// Operands of one comparison: every head has keys of its own.
pub struct Case {
    pub heads: u32,
    pub rows: u32,
    pub keys: u32,
    pub dim: u32,
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
}

/// One library, ready to run the same call again.
pub trait Peer {
    fn name(&self) -> String;
    /// The output, `[head, row, dim]`, on the host.
    fn run(&mut self) -> Vec<f32>;
}

/// The largest absolute error allowed: outputs are about 0.03, mixed from 4096 values.
const TOLERANCE: f32 = 1e-5;

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    let gpu = Gpu::new().unwrap_or_else(|error| panic!("{error}"));
    let info = gpu.device().adapter_info();
    println!("{}, {} {}", info.name, info.backend, info.driver_info);
    let mut good = true;
    for &rows in &args.rows {
        good &= compare(&gpu, &args, rows);
    }
    if good { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

fn compare(gpu: &Gpu, args: &Args, rows: u32) -> bool {
    let &Args { heads, keys, dim, .. } = args;
    let mut random = rand::rngs::StdRng::seed_from_u64(3);
    let mut normal = |tokens: u32| -> Vec<f32> {
        let n = (heads * tokens * dim) as usize;
        rand_distr::StandardNormal.sample_iter(&mut random).take(n).collect()
    };
    let (q, k, v) = (normal(rows), normal(keys), normal(keys));
    let case = Case { heads, rows, keys, dim, q, k, v };
    let shape = Shape::self_attention(1, heads, rows, dim).kv_len(keys);
    let inputs = Inputs::new(&case.q, &case.k, &case.v);
    let want = cpu::attention(&Problem::new(shape), inputs).expect("a good call").o;

    let mut peers: Vec<Box<dyn Peer + '_>> = vec![Box::new(ours::Ours::new(gpu, &case))];
    #[cfg(feature = "candle")]
    peers.push(Box::new(candle::Candle::new(&case)));
    #[cfg(feature = "burn")]
    peers.push(Box::new(burn::Burn::new(&case)));
    println!("\n{rows} x {keys} keys, {heads} heads of {dim}, f32");
    let mut good = true;
    for peer in &mut peers {
        // Several times: kernels are compiled and tuned.
        let got = (0..5).map(|_| peer.run()).last().expect("an output");
        let errors = got.iter().zip(&want).map(|(got, want)| (got - want).abs());
        let error = errors.fold(0.0f32, |most, error| if error > most { error } else { most });
        if got.len() != want.len() || got.iter().any(|x| x.is_nan()) || error > TOLERANCE {
            println!("  {}: wrong by {error:e}", peer.name());
            good = false;
        }
    }
    let mut times = vec![Vec::new(); peers.len()];
    for _ in 0..args.rounds {
        for (peer, times) in peers.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            std::hint::black_box(peer.run());
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    let medians: Vec<f64> = times
        .iter_mut()
        .map(|times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        })
        .collect();
    for ((peer, median), times) in peers.iter().zip(&medians).zip(&times) {
        let ratio = median / medians[0];
        println!(
            "  {:44} {median:>8.2} ms  (best {:.2})  {ratio:>6.2} x ours",
            peer.name(),
            times[0]
        );
    }
    good
}
