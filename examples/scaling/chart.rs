//! The measurements as a picture: time and memory over tokens, both axes logarithmic, so that a
//! power of the number of tokens is a straight line.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use plotters::prelude::{BLACK, DrawingBackend, RGBColor};

use super::measure::{Figures, Line, METHODS, Method};
use super::table::{binary, readable};
use pen::{self, Letters, Pen, Point, Side};

const SIZE: [f64; 2] = [960.0, 440.0];
const GREY: RGBColor = RGBColor(100, 100, 100);
const GRID: RGBColor = RGBColor(226, 226, 226);
const TITLE: Letters = Letters { size: 24.0, colour: BLACK };
const HEAD: Letters = Letters { size: 18.0, colour: BLACK };
const NOTE: Letters = Letters { size: 15.0, colour: GREY };

/// Told apart by colour-blind readers as well.
fn colour(method: Method) -> RGBColor {
    match method {
        Method::Cpu => RGBColor(140, 140, 140),
        Method::Staged => RGBColor(213, 94, 0),
        Method::Fused => RGBColor(0, 114, 178),
    }
}

fn ends_in(file: &Path, what: &str) -> bool {
    file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(what))
}

/// Whether [`draw`] can do what is asked, said before any work.
pub fn check(file: &Path, lines: usize) -> Result<(), String> {
    if !ends_in(file, "svg") && !ends_in(file, "png") {
        return Err(format!("{}: a picture ends in .svg or .png", file.display()));
    }
    if lines < 2 {
        return Err("--plot needs two numbers of tokens or more".into());
    }
    File::create(file).map(drop).map_err(|error| format!("{}: {error}", file.display()))
}

/// `note` says what was measured and where.
pub fn draw(file: &Path, lines: &[Line], note: &str) -> Result<(), String> {
    match ends_in(file, "svg") {
        true => pen::svg(file, SIZE, |pen| picture(pen, lines, note)),
        false => pen::png(file, SIZE, |pen| picture(pen, lines, note)),
    }
}

fn picture<B: DrawingBackend>(pen: &Pen<B>, lines: &[Line], note: &str) -> Result<(), String> {
    let title = "Twice the tokens: time ×4, memory of stored scores ×4, of the fused kernel ×2";
    pen.text([24.0, 26.0], Side::Right, TITLE, title)?;
    pen.text([24.0, 52.0], Side::Right, NOTE, note)?;
    let time = Panel {
        title: "time of one call",
        tick: 10.0,
        label: |seconds| readable(Duration::from_secs_f64(seconds)),
        ..Panel::new([80.0, 460.0], lines, |figures| Some(figures.time.as_secs_f64()))
    };
    time.draw(pen)?;
    time.slope(pen)?;
    let memory = Panel {
        title: "memory beyond Q, K and V",
        tick: 4.0,
        label: |bytes| binary(bytes.round() as u64),
        says_growth: true,
        legend: [720.0, Y[1] - 46.0],
        ..Panel::new([568.0, 948.0], lines, |figures| figures.bytes.map(|bytes| bytes as f64))
    };
    if !memory.series.is_empty() {
        memory.draw(pen)?;
        memory.mark(pen, (128u64 << 20) as f64, "WebGPU's default binding")?;
    }
    Ok(())
}

/// Values of one method, `[tokens, value]`.
struct Series {
    method: Method,
    points: Vec<Point>,
}

impl Series {
    /// Growth at the last doubling.
    fn ratio(&self) -> Option<f64> {
        match self.points.as_slice() {
            [.., before, last] => Some(last[1] / before[1]),
            _ => None,
        }
    }
}

struct Panel {
    title: &'static str,
    /// From one line of the grid to the next.
    tick: f64,
    label: fn(f64) -> String,
    /// Whether the legend does, which needs values without noise.
    says_growth: bool,
    legend: Point,
    /// Left and right edge on the page.
    x: [f64; 2],
    tokens: Vec<f64>,
    /// Lowest and highest value shown.
    range: [f64; 2],
    series: Vec<Series>,
}

/// Upper and lower edge on the page.
const Y: [f64; 2] = [108.0, 386.0];

impl Panel {
    fn new(x: [f64; 2], lines: &[Line], value: impl Fn(&Figures) -> Option<f64>) -> Panel {
        let points = |method: Method| {
            let point = |line: &Line| {
                let value = value(line.figures(method)?)?;
                Some([line.tokens().into(), value])
            };
            lines.iter().filter_map(point).collect()
        };
        let series = METHODS.map(|method| Series { method, points: points(method) });
        let series: Vec<_> = series.into_iter().filter(|s| !s.points.is_empty()).collect();
        let values = || series.iter().flat_map(|series| series.points.iter().map(|point| point[1]));
        let range = [values().fold(f64::MAX, f64::min) / 2.0, values().fold(0.0, f64::max) * 2.0];
        let tokens = lines.iter().map(|line| line.tokens().into()).collect();
        Panel {
            title: "",
            tick: 10.0,
            label: |_| String::new(),
            says_growth: false,
            legend: [x[0] + 24.0, Y[0] + 16.0],
            x,
            tokens,
            range,
            series,
        }
    }

    /// Where a value lies on the page.
    fn at(&self, [tokens, value]: Point) -> Point {
        let part = |x: f64, low: f64, high: f64| (x / low).ln() / (high / low).ln();
        let (first, last) = (self.tokens[0], self.tokens[self.tokens.len() - 1]);
        let across = 0.04 + 0.92 * part(tokens, first, last);
        let up = part(value, self.range[0], self.range[1]);
        [self.x[0] + across * (self.x[1] - self.x[0]), Y[1] - up * (Y[1] - Y[0])]
    }

    fn draw<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        let [left, right] = self.x;
        pen.text([left, Y[0] - 16.0], Side::Right, HEAD, self.title)?;
        let power = |value: f64| (value.ln() / self.tick.ln()).ceil() as i32;
        for power in power(self.range[0])..power(self.range[1]) {
            let value = self.tick.powi(power);
            let y = self.at([self.tokens[0], value])[1];
            pen.line(&[[left, y], [right, y]], 1.0, GRID)?;
            // A whole number needs no decimals.
            let label = (self.label)(value).replacen(".00", "", 1).replacen(".0", "", 1);
            pen.text([left - 8.0, y], Side::Left, NOTE, &label)?;
        }
        for &tokens in &self.tokens {
            let x = self.at([tokens, self.range[0]])[0];
            pen.line(&[[x, Y[0]], [x, Y[1]]], 1.0, GRID)?;
            pen.text([x, Y[1] + 14.0], Side::Middle, NOTE, &tokens.to_string())?;
        }
        pen.text([(left + right) / 2.0, Y[1] + 36.0], Side::Middle, NOTE, "tokens")?;
        for series in &self.series {
            let points: Vec<Point> = series.points.iter().map(|&point| self.at(point)).collect();
            pen.line(&points, 3.0, colour(series.method))?;
            points.iter().try_for_each(|&at| pen.dot(at, 4.0, colour(series.method)))?;
        }
        self.legend(pen)
    }

    /// The highest line first, as in the picture.
    fn legend<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        let mut order: Vec<&Series> = self.series.iter().collect();
        let first = |series: &Series| series.points[0][1];
        order.sort_by(|a, b| first(b).total_cmp(&first(a)));
        for (row, series) in (0..).zip(order) {
            let [x, y] = [self.legend[0], self.legend[1] + 22.0 * f64::from(row)];
            let colour = colour(series.method);
            pen.line(&[[x, y], [x + 26.0, y]], 3.0, colour)?;
            let growth = series.ratio().filter(|_| self.says_growth);
            let growth = growth.map_or("".into(), |ratio| format!(": ×{ratio:.1} per doubling"));
            let name = format!("{}{growth}", series.method.title());
            pen.text([x + 34.0, y], Side::Right, Letters { size: 16.0, colour }, &name)?;
        }
        Ok(())
    }

    /// What growing with the square of the tokens looks like: a line below all values.
    fn slope<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let factor = points.map(|[tokens, value]| value / tokens.powi(2)).fold(f64::MAX, f64::min);
        let value = |tokens: f64| factor / 2.5 * tokens.powi(2);
        let last = self.tokens[self.tokens.len() - 1];
        // From where it enters the panel.
        let first = self.tokens[0].max(last * (self.range[0] / value(last)).sqrt());
        pen.dashes([first, last].map(|tokens| self.at([tokens, value(tokens)])), GREY)?;
        let tokens = first * (last / first).powf(0.4);
        let [x, y] = self.at([tokens, value(tokens)]);
        pen.text([x + 12.0, y + 16.0], Side::Right, NOTE, "slope of ×4 per doubling")
    }

    /// A value that means something, if it lies in the picture.
    fn mark<B: DrawingBackend>(&self, pen: &Pen<B>, value: f64, text: &str) -> Result<(), String> {
        if value < self.range[0] || value > self.range[1] {
            return Ok(());
        }
        let y = self.at([self.tokens[0], value])[1];
        pen.dashes([[self.x[0], y], [self.x[1], y]], GREY)?;
        let text = format!("{}: {text}", (self.label)(value));
        pen.text([self.x[0] + 24.0, y + 12.0], Side::Right, NOTE, &text)
    }
}
