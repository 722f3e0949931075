//! Lines and letters on a plotters page, in units that a scale turns into pixels.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use plotters::coord::Shift;
use plotters::element::{Circle, PathElement, Polygon};
use plotters::prelude::{
    BitMapBackend, BitMapElement, Color, DrawingArea, DrawingBackend, FontTransform,
    IntoDrawingArea, IntoFont, RGBColor, SVGBackend,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, IntoTextStyle, WHITE, register_font};

/// The family of all letters. In an SVG it is the reader's own; in a PNG an open font that travels
/// with the program, since a machine without a desktop has none.
const FAMILY: &str = "sans-serif";

pub type Point = [f64; 2];

/// Where a text lies around its point.
#[derive(Clone, Copy)]
pub enum Side {
    /// The text begins there.
    Right,
    /// The text ends there.
    Left,
    /// The text is centred there.
    Middle,
    /// The text begins there and runs upwards.
    Up,
    /// The text is centred there and runs upwards.
    MiddleUp,
}

/// How a text looks.
#[derive(Clone, Copy)]
pub struct Letters {
    pub size: f64,
    pub colour: RGBColor,
}

/// Pixels of a unit in a PNG: enough for sharp letters.
pub const SHARP: f64 = 1.5;

/// Draws on one page; what goes wrong is told in words.
pub struct Pen<B: DrawingBackend> {
    area: DrawingArea<B, Shift>,
    scale: f64,
    /// How far plotters draws letters above their middle, in ems.
    above: f64,
}

/// Draws a page of so many units, across and down, as an SVG file.
pub fn svg(
    file: &Path,
    size: [f64; 2],
    draw: impl FnOnce(&Pen<SVGBackend<'_>>) -> Result<(), String>,
) -> Result<(), String> {
    let [width, height] = size.map(|units| units.round() as u32);
    let mut text = String::new();
    let pen = Pen::new(SVGBackend::with_string(&mut text, (width, height)), 1.0, 0.0)?;
    draw(&pen)?;
    pen.finish()?;
    std::fs::write(file, text).map_err(|error| named(file, &error))
}

/// Draws a page of so many units, across and down, as a PNG file.
pub fn png(
    file: &Path,
    size: [f64; 2],
    draw: impl FnOnce(&Pen<BitMapBackend<'_>>) -> Result<(), String>,
) -> Result<(), String> {
    let (pixels, rgb) = pixels(size, draw)?;
    let to = File::create(file).map_err(|error| named(file, &error))?;
    let mut encoder = png::Encoder::new(BufWriter::new(to), pixels[0], pixels[1]);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    let written = encoder.write_header().and_then(|mut to| to.write_image_data(&rgb));
    written.map_err(|error| named(file, &error))
}

/// Draws a page of so many units, across and down: its size in pixels, three bytes for each.
pub fn pixels(
    size: [f64; 2],
    draw: impl FnOnce(&Pen<BitMapBackend<'_>>) -> Result<(), String>,
) -> Result<([u32; 2], Vec<u8>), String> {
    let [width, height] = size.map(|units| (SHARP * units).round() as u32);
    let mut rgb = vec![0; 3 * (width * height) as usize];
    let pen = Pen::new(BitMapBackend::with_buffer(&mut rgb, (width, height)), SHARP, 0.17)?;
    draw(&pen)?;
    pen.finish()?;
    Ok(([width, height], rgb))
}

fn named(file: &Path, error: &dyn std::error::Error) -> String {
    format!("{}: {error}", file.display())
}

impl Pen<BitMapBackend<'_>> {
    /// A square picture of so many pixels.
    pub fn image(&self, corner: Point, side: u32, rgb: Vec<u8>) -> Result<(), String> {
        let image = BitMapElement::with_owned_buffer(self.at(corner), (side, side), rgb);
        let image = image.ok_or("a picture of another size")?;
        self.area.draw(&image).map_err(|error| error.to_string())
    }
}

impl<B: DrawingBackend> Pen<B> {
    fn new(backend: B, scale: f64, above: f64) -> Result<Pen<B>, String> {
        let letters = epaint_default_fonts::UBUNTU_LIGHT;
        let registered = register_font(FAMILY, FontStyle::Normal, letters);
        registered.map_err(|_| "the font cannot be read")?;
        let area = backend.into_drawing_area();
        area.fill(&WHITE).map_err(|error| error.to_string())?;
        Ok(Pen { area, scale, above })
    }

    fn at(&self, [x, y]: Point) -> (i32, i32) {
        ((x * self.scale).round() as i32, (y * self.scale).round() as i32)
    }

    /// Vertically centred on the point, or horizontally if it runs upwards.
    pub fn text(&self, at: Point, side: Side, letters: Letters, text: &str) -> Result<(), String> {
        let Letters { size, colour } = letters;
        let at = match side {
            Side::Up | Side::MiddleUp => [at[0] + self.above * size, at[1]],
            _ => [at[0], at[1] + self.above * size],
        };
        let (across, transform) = match side {
            Side::Right => (HPos::Left, FontTransform::None),
            Side::Left => (HPos::Right, FontTransform::None),
            Side::Middle => (HPos::Center, FontTransform::None),
            Side::Up => (HPos::Left, FontTransform::Rotate270),
            Side::MiddleUp => (HPos::Center, FontTransform::Rotate270),
        };
        let font = (FAMILY, size * self.scale).into_font().transform(transform);
        let style = font.color(&colour).into_text_style(&self.area);
        let style = style.pos(Pos::new(across, VPos::Center));
        self.area.draw_text(text, &style, self.at(at)).map_err(|error| error.to_string())
    }

    pub fn line(&self, points: &[Point], width: f64, colour: RGBColor) -> Result<(), String> {
        let width = (width * self.scale) as u32;
        let points: Vec<_> = points.iter().map(|&point| self.at(point)).collect();
        let path = PathElement::new(points, colour.stroke_width(width.max(1)));
        self.area.draw(&path).map_err(|error| error.to_string())
    }

    /// A straight line of dashes.
    pub fn dashes(&self, [from, to]: [Point; 2], colour: RGBColor) -> Result<(), String> {
        const DASH: f64 = 5.0;
        let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
        let length = dx.hypot(dy);
        let point = |at: f64| {
            let part = (at / length).min(1.0);
            [from[0] + part * dx, from[1] + part * dy]
        };
        let dashes = (0..).map(|dash| 2.0 * DASH * f64::from(dash));
        dashes
            .take_while(|&begin| begin < length)
            .try_for_each(|begin| self.line(&[point(begin), point(begin + DASH)], 1.0, colour))
    }

    pub fn dot(&self, at: Point, radius: f64, colour: RGBColor) -> Result<(), String> {
        let circle = Circle::new(self.at(at), (radius * self.scale).round(), colour.filled());
        self.area.draw(&circle).map_err(|error| error.to_string())
    }

    /// Filled; two opposite corners.
    pub fn rectangle(&self, [a, b]: [Point; 2], colour: RGBColor) -> Result<(), String> {
        let corners = [a, [b[0], a[1]], b, [a[0], b[1]]].map(|corner| self.at(corner));
        self.area.draw(&Polygon::new(corners, colour)).map_err(|error| error.to_string())
    }

    /// Ends the drawing.
    fn finish(self) -> Result<(), String> {
        self.area.present().map_err(|error| error.to_string())
    }
}
