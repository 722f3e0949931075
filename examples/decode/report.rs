//! The runs as text, and whether each is right.

use wgpu_attention::Element;

use crate::args::{Sizes, name};
use crate::run::Run;

/// The largest absolute error of f32 caches.
const MOST: f64 = 1e-5;
/// The largest share of f32's bytes that int8 may take, for rows that fill whole texels.
const INT8_SHARE: f64 = 0.28;

/// The largest relative RMS error allowed.
fn allowed(element: Element) -> f64 {
    match element {
        Element::F32 => 1e-5,
        Element::F16 => 1e-3,
        Element::Bf16 => 1e-2,
        _ => 2e-2,
    }
}

/// A line for each type: rate, bytes, error.
pub fn types(sizes: &Sizes, runs: &[Run]) {
    println!(
        "{:>5} {:>11} {:>9} {:>12} {:>7} {:>9} {:>8}",
        "type", "prompt, ms", "tokens/s", "cache bytes", "of f32", "error", "allowed"
    );
    for run in runs {
        let (name, rate) = (name(run.element), rate(run));
        let bytes = u64::from(sizes.layers) * sizes.cache(run.element).bytes();
        let (share, error) = (share(sizes, run.element), run.last.relative());
        let (prompt, allowed) = (run.prefill, allowed(run.element));
        println!(
            "{name:>5} {prompt:>11.1} {rate:>9.1} {bytes:>12} {share:>7.3} {error:>9.1e} \
             {allowed:>8.0e}"
        );
    }
    println!(
        "error: RMS(o - o_f32) / RMS(o_f32) of the last step's outputs, all layers; o_f32 is the"
    );
    println!("definition in f64 (cpu::attention) over f32 keys and values (cpu::KvCache).");
}

/// A line for each tenth of the steps.
pub fn growth(sizes: &Sizes, runs: &[Run]) {
    let steps = sizes.steps as usize;
    let window = steps.div_ceil(10);
    println!("\nmilliseconds per step, median of {window} up to so many cached tokens");
    print!("{:>7}", "tokens");
    runs.iter().for_each(|run| print!(" {:>8}", name(run.element)));
    println!();
    for first in (0..steps).step_by(window) {
        let end = steps.min(first + window);
        print!("{:>7}", sizes.prefill as usize + end);
        runs.iter().for_each(|run| print!(" {:>8.3}", median(&run.milliseconds[first..end])));
        println!();
    }
}

/// Whether all is as it should be; says what was checked.
pub fn checks(sizes: &Sizes, runs: &[Run], check: bool) -> bool {
    println!();
    let mut good = true;
    let mut say = |right: bool, what: String| {
        println!("{} {what}", if right { "ok   " } else { "WRONG" });
        good &= right;
    };
    for run in runs {
        let (name, limit, error) = (name(run.element), allowed(run.element), run.last.relative());
        say(error <= limit, format!("{name}: relative RMS error {error:.1e} <= {limit:.0e}"));
        if run.element == Element::F32 {
            let rows = if check { "the prompt and every step" } else { "the last step" };
            let most = run.most;
            say(most <= MOST, format!("{name}: {rows} within {most:.1e} <= {MOST:.0e}"));
        }
        if run.element == Element::Int8 && check && sizes.dim.is_multiple_of(64) {
            let share = share(sizes, run.element);
            let what = format!("{name}: {share:.3} <= {INT8_SHARE} of f32's bytes");
            say(share <= INT8_SHARE, what);
        }
    }
    good
}

fn share(sizes: &Sizes, element: Element) -> f64 {
    sizes.cache(element).bytes() as f64 / sizes.cache(Element::F32).bytes() as f64
}

/// Tokens a second, the prompt left out.
fn rate(run: &Run) -> f64 {
    1e3 * run.milliseconds.len() as f64 / run.milliseconds.iter().sum::<f64>()
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
