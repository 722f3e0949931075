//! Milliseconds per step over the cached tokens, as a picture.

use std::path::Path;

use plotters::prelude::{BLACK, DrawingBackend, RGBColor};

use crate::pen::{self, Letters, Pen, Point, Side};
use crate::run::Run;
use crate::{Stored, median};

const SIZE: [f64; 2] = [760.0, 420.0];
/// Left and right, upper and lower edge.
const X: [f64; 2] = [80.0, 640.0];
const Y: [f64; 2] = [60.0, 350.0];
const GRID: RGBColor = RGBColor(226, 226, 226);
const TITLE: Letters = Letters { size: 20.0, colour: BLACK };
const NOTE: Letters = Letters { size: 15.0, colour: RGBColor(100, 100, 100) };
/// Points of a line.
const POINTS: usize = 40;

/// Told apart by colour-blind readers as well.
fn colour(stored: Stored) -> RGBColor {
    match stored {
        Stored::F32 => RGBColor(0, 114, 178),
        Stored::F16 => RGBColor(213, 94, 0),
        Stored::Bf16 => RGBColor(0, 158, 115),
        Stored::Int8 => RGBColor(204, 121, 167),
    }
}

pub fn draw(file: &Path, prefill: u32, runs: &[(Stored, Run)]) -> Result<(), String> {
    let ends_in = |what| file.extension().is_some_and(|ending| ending == what);
    match (ends_in("svg"), ends_in("png")) {
        (true, _) => pen::svg(file, SIZE, |pen| picture(pen, prefill, runs)),
        (_, true) => pen::png(file, SIZE, |pen| picture(pen, prefill, runs)),
        _ => Err(format!("{}: a picture ends in .svg or .png", file.display())),
    }
}

fn picture<B: DrawingBackend>(
    pen: &Pen<B>,
    prefill: u32,
    runs: &[(Stored, Run)],
) -> Result<(), String> {
    let steps = runs.iter().map(|run| run.1.milliseconds.len()).max().unwrap_or(1);
    let window = steps.div_ceil(POINTS).max(1);
    // [tokens, milliseconds]: medians of a few steps
    let line = |run: &Run| -> Vec<Point> {
        let windows = run.milliseconds.chunks(window).enumerate();
        let tokens = |at: usize, n: usize| f64::from(prefill) + (at * window + n) as f64;
        windows.map(|(at, times)| [tokens(at, times.len()), median(times)]).collect()
    };
    let lines: Vec<_> = runs.iter().map(|(stored, run)| (*stored, line(run))).collect();
    let most = lines.iter().flat_map(|line| &line.1).fold(0.0f64, |most, point| most.max(point[1]));
    let most = if most > 0.0 { 1.1 * most } else { 1.0 };
    let first = f64::from(prefill);
    let at = |[tokens, time]: Point| {
        let across = (tokens - first) / steps as f64;
        [X[0] + across * (X[1] - X[0]), Y[1] - time / most * (Y[1] - Y[0])]
    };
    pen.text([24.0, 28.0], Side::Right, TITLE, "Milliseconds per token as the cache grows")?;
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
    for (row, (stored, line)) in lines.iter().enumerate() {
        let points: Vec<Point> = line.iter().map(|&point| at(point)).collect();
        pen.line(&points, 2.5, colour(*stored))?;
        let name = format!("{stored:?}").to_lowercase();
        let letters = Letters { colour: colour(*stored), ..NOTE };
        pen.text([X[1] + 20.0, Y[0] + 22.0 * row as f64], Side::Right, letters, &name)?;
    }
    Ok(())
}
