//! Milliseconds per step over the cached tokens, as a picture.

use std::fs::File;
use std::path::Path;

use plotters::prelude::{BLACK, DrawingBackend, RGBColor};

use wgpu_attention::Element;

use crate::args::name;
use crate::report::median;
use crate::run::Run;
use pen::{self, Letters, Pen, Point, Side};

const SIZE: [f64; 2] = [760.0, 420.0];
/// Left and right, upper and lower edge.
const X: [f64; 2] = [80.0, 640.0];
const Y: [f64; 2] = [84.0, 350.0];
const GRID: RGBColor = RGBColor(226, 226, 226);
const TITLE: Letters = Letters { size: 20.0, colour: BLACK };
const NOTE: Letters = Letters { size: 15.0, colour: RGBColor(100, 100, 100) };
/// Points of a line.
const POINTS: usize = 40;

/// Told apart by colour-blind readers as well.
fn colour(element: Element) -> RGBColor {
    match element {
        Element::F32 => RGBColor(0, 114, 178),
        Element::F16 => RGBColor(213, 94, 0),
        Element::Bf16 => RGBColor(0, 158, 115),
        _ => RGBColor(204, 121, 167),
    }
}

fn ends_in(file: &Path, what: &str) -> bool {
    file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(what))
}

/// Whether [`draw`] can do what is asked, said before any work.
pub fn check(file: &Path) -> Result<(), String> {
    if !ends_in(file, "svg") && !ends_in(file, "png") {
        return Err(format!("{}: a picture ends in .svg or .png", file.display()));
    }
    File::create(file).map(drop).map_err(|error| format!("{}: {error}", file.display()))
}

/// `note` says what was measured and where.
pub fn draw(file: &Path, prefill: u32, runs: &[Run], note: &str) -> Result<(), String> {
    match ends_in(file, "svg") {
        true => pen::svg(file, SIZE, |pen| picture(pen, prefill, runs, note)),
        false => pen::png(file, SIZE, |pen| picture(pen, prefill, runs, note)),
    }
}

fn picture<B: DrawingBackend>(
    pen: &Pen<B>,
    prefill: u32,
    runs: &[Run],
    note: &str,
) -> Result<(), String> {
    let steps = runs.iter().map(|run| run.milliseconds.len()).max().unwrap_or(1);
    let window = steps.div_ceil(POINTS).max(1);
    // [tokens, milliseconds]: medians of a few steps
    let line = |run: &Run| -> Vec<Point> {
        let windows = run.milliseconds.chunks(window).enumerate();
        let tokens = |at: usize, n: usize| f64::from(prefill) + (at * window + n) as f64;
        windows.map(|(at, times)| [tokens(at, times.len()), median(times)]).collect()
    };
    let lines: Vec<_> = runs.iter().map(|run| (run.element, line(run))).collect();
    let most = lines.iter().flat_map(|line| &line.1).fold(0.0f64, |most, point| most.max(point[1]));
    let most = if most > 0.0 { 1.1 * most } else { 1.0 };
    let first = f64::from(prefill);
    let at = |[tokens, time]: Point| {
        let across = (tokens - first) / steps as f64;
        [X[0] + across * (X[1] - X[0]), Y[1] - time / most * (Y[1] - Y[0])]
    };
    pen.text([24.0, 28.0], Side::Right, TITLE, "Milliseconds per token as the cache grows")?;
    pen.text([24.0, 54.0], Side::Right, NOTE, note)?;
    for part in 0..=4 {
        let share = f64::from(part) / 4.0;
        let [_, y] = at([first, share * most]);
        pen.line(&[[X[0], y], [X[1], y]], 1.0, GRID)?;
        pen.text([X[0] - 8.0, y], Side::Left, NOTE, &format!("{:.1}", share * most))?;
        let [x, _] = at([first + share * steps as f64, 0.0]);
        let tokens = format!("{:.0}", first + share * steps as f64);
        pen.text([x, Y[1] + 16.0], Side::Middle, NOTE, &tokens)?;
    }
    pen.text([(X[0] + X[1]) / 2.0, Y[1] + 42.0], Side::Middle, NOTE, "cached tokens")?;
    for (row, (element, line)) in lines.iter().enumerate() {
        let points: Vec<Point> = line.iter().map(|&point| at(point)).collect();
        pen.line(&points, 2.5, colour(*element))?;
        let name = name(*element);
        let letters = Letters { colour: colour(*element), ..NOTE };
        pen.text([X[1] + 20.0, Y[0] + 22.0 * row as f64], Side::Right, letters, &name)?;
    }
    Ok(())
}
