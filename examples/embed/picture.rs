//! The heat map with its tokens, a title and a colour bar, as a PNG.

use std::path::Path;

use plotters::prelude::{BLACK, DrawingBackend, RGBColor};

use super::colour;
use super::program::{Digits, Heat};
use super::source::Source;
use pen::{self, Letters, Pen, Point, SHARP, Side};

const GREY: RGBColor = RGBColor(100, 100, 100);
const TITLE: Letters = Letters { size: 22.0, colour: BLACK };
const TOLD: RGBColor = RGBColor(196, 60, 0);
const NOTE: Letters = Letters { size: 15.0, colour: GREY };

/// Units left of the heat map, right of it, and below.
const MARGINS: [f64; 3] = [126.0, 96.0, 24.0];

/// Sizes that depend on how many tokens there are.
pub struct Style {
    /// Pixels of a cell's side.
    pub cell: u32,
    token: f64,
    digit: f64,
    /// Units above the heat map.
    top: f64,
}

impl Style {
    pub fn of(source: &Source) -> Style {
        let few = source.tokens.len() <= 8;
        let (cell, token, digit, top) =
            if few { (72.0, 20.0, 24.0, 142.0) } else { (36.0, 17.0, 16.0, 172.0) };
        Style { cell: (SHARP * cell) as u32, token, digit, top }
    }

    /// Digits for the fragment shader, white on black.
    pub fn digits(&self) -> Result<Digits, String> {
        let [wide, high] = [0.5, 1.1].map(|ems| (ems * self.digit).ceil());
        let letters = Letters { size: self.digit, colour: BLACK };
        let ([width, height], rgb) = pen::pixels([10.0 * wide, high], |pen| {
            (0..10u8).try_for_each(|digit| {
                let at = [(f64::from(digit) + 0.5) * wide, high / 2.0];
                pen.text(at, Side::Middle, letters, &digit.to_string())
            })
        })?;
        let pixels = rgb.chunks_exact(3).map(|pixel| 255 - pixel[0]).collect();
        Ok(Digits { size: [width / 10, height], pixels })
    }
}

/// `weights` are the CPU reference's, for the title.
pub fn save(
    file: &Path,
    source: &Source,
    heat: &Heat,
    style: &Style,
    weights: &[Vec<f64>],
) -> Result<(), String> {
    let [left, right, below] = MARGINS;
    let side = f64::from(heat.side) / SHARP;
    let size = [left + side + right, style.top + side + below];
    pen::png(file, size, |pen| {
        pen.text([24.0, 30.0], Side::Right, TITLE, &source.finding(weights))?;
        pen.text([24.0, 58.0], Side::Right, NOTE, &source.text)?;
        pen.image([left, style.top], heat.side, heat.pixels.concat())?;
        draw_tokens(pen, source, style, source.most(weights))?;
        draw_bar(pen, [left + side + 24.0, style.top], side)
    })
}

/// Along both axes; the query and the key of the title in a colour of their own.
fn draw_tokens<B: DrawingBackend>(
    pen: &Pen<B>,
    source: &Source,
    style: &Style,
    told: [usize; 2],
) -> Result<(), String> {
    let ([left, ..], top) = (MARGINS, style.top);
    let cell = f64::from(style.cell) / SHARP;
    let letters = |told| Letters { size: style.token, colour: if told { TOLD } else { BLACK } };
    for (at, token) in source.tokens.iter().enumerate() {
        let middle = cell * (at as f64 + 0.5);
        pen.text([left - 10.0, top + middle], Side::Left, letters(at == told[0]), token)?;
        pen.text([left + middle, top - 10.0], Side::Up, letters(at == told[1]), token)?;
    }
    let half = cell * source.tokens.len() as f64 / 2.0;
    pen.text([left + half, 88.0], Side::Middle, NOTE, "key")?;
    pen.text([30.0, top + half], Side::MiddleUp, NOTE, "query")
}

/// The colours, from weight 1 down to 0.
fn draw_bar<B: DrawingBackend>(pen: &Pen<B>, [x, top]: Point, side: f64) -> Result<(), String> {
    let height = side / colour::STEPS as f64;
    for (step, [r, g, b]) in (1..).zip(colour::map()) {
        let y = top + side - height * f64::from(step);
        pen.rectangle([[x, y], [x + 16.0, y + height]], RGBColor(r, g, b))?;
    }
    [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0].into_iter().try_for_each(|percent| {
        let part = colour::step(percent / 100.0) as f64 / (colour::STEPS - 1) as f64;
        let at = [x + 24.0, top + side * (1.0 - part)];
        pen.text(at, Side::Right, NOTE, &format!("{percent} %"))
    })
}
