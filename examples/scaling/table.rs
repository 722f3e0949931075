//! The measurements as text: a table for people, CSV for programs.

use std::fmt::{self, Write};
use std::time::Duration;

use wgpu_attention::wgpu;

use super::measure::{Cell, Figures, Line, METHODS, Method};

/// The two lines above the first [`Row`].
pub fn header() -> String {
    let columns = |bytes: bool| {
        let bytes = if bytes { format!(" {:>8}", "memory") } else { String::new() };
        format!("{:>7} {:>5} {:>7}{bytes}", "time", "ratio", "GFLOP/s")
    };
    let [plain, wide] = [false, true].map(columns);
    let [cpu, staged, fused] = [("CPU reference", &plain), ("staged", &wide), ("fused", &wide)]
        .map(|(name, columns)| format!("{name:^width$}", width = columns.len()));
    format!("{:>6}   {cpu}   {staged}   {fused}\n{:>6}   {plain}   {wide}   {wide}", "", "tokens")
}

/// One line of the table, with the line that has half the tokens.
pub struct Row<'a> {
    pub line: &'a Line,
    pub before: Option<&'a Line>,
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6}", self.line.tokens())?;
        for (method, cell) in METHODS.into_iter().zip(&self.line.cells) {
            let width = if method == Method::Cpu { 21 } else { 30 };
            let text = match cell {
                Cell::Done(figures) => self.figures(method, figures),
                Cell::Limit(_) => format!("{:^width$}", "over a limit, see below"),
                Cell::NotRun(reason) => format!("{reason:^width$}"),
            };
            write!(f, "   {text}")?;
        }
        Ok(())
    }
}

impl Row<'_> {
    fn figures(&self, method: Method, figures: &Figures) -> String {
        let seconds = figures.time.as_secs_f64();
        let before = self.before.and_then(|line| line.figures(method));
        let ratio = before
            .map_or("".into(), |before| format!("x{:.1}", seconds / before.time.as_secs_f64()));
        let rate = 1e-9 * self.line.operations / seconds;
        let bytes = figures.bytes.map_or("".into(), |bytes| format!(" {:>8}", binary(bytes)));
        format!("{:>7} {ratio:>5} {rate:>7.2}{bytes}", readable(figures.time))
    }
}

/// What the table says, and where stored scores end.
pub struct Summary<'a> {
    pub lines: &'a [Line],
    pub limits: &'a wgpu::Limits,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ratio: to half the tokens; 4 = quadratic. memory: beyond Q, K and V.")?;
        if let [first, .., last] = self.lines {
            let growth = [Method::Staged, Method::Fused].into_iter().filter_map(|method| {
                let bytes = |line: &Line| Some(line.figures(method)?.bytes? as f64);
                Some(format!("{} x {}", method.name(), three(bytes(last)? / bytes(first)?)))
            });
            let growth = growth.collect::<Vec<_>>().join(", ");
            let [first, last] = [first, last].map(Line::tokens);
            if !growth.is_empty() {
                let times = last / first;
                writeln!(f, "memory from {first} to {last} tokens (x {times}): {growth}")?;
            }
        }
        let heads = self.lines[0].problem.shape().q_heads;
        let most = self.limits.max_storage_buffer_binding_size.min(self.limits.max_buffer_size);
        let ends = |name: &str, bytes: u64| {
            format!("{name}, {}, ends at n = {}", binary(bytes), last_tokens(bytes, heads))
        };
        let default = wgpu::Limits::default().max_storage_buffer_binding_size;
        writeln!(f, "stored scores take {} n^2 bytes of one binding:", 4 * heads)?;
        writeln!(f, "  {}", ends("WebGPU's default", default))?;
        writeln!(f, "  {}", ends("this device's largest", most))?;
        for line in self.lines {
            for (method, cell) in METHODS.into_iter().zip(&line.cells) {
                if let Cell::Limit(error) = cell {
                    let (name, tokens) = (method.name(), line.tokens());
                    writeln!(f, "  {name}, {tokens} tokens: {error}")?;
                }
            }
        }
        let all = self.lines.iter().flat_map(|line| line.cells.iter().filter_map(Cell::figures));
        match all.map(|figures| figures.error).reduce(f64::max) {
            Some(error) => write!(f, "largest error of the checked rows: {error:.1e}"),
            None => write!(f, "nothing was computed"),
        }
    }
}

/// The most tokens whose scores fit.
fn last_tokens(bytes: u64, heads: u32) -> u64 {
    (bytes / 4 / u64::from(heads)).isqrt()
}

pub fn csv(lines: &[Line], causal: bool) -> String {
    let mut csv = String::from(
        "method,heads,tokens,dim,causal,status,seconds,gflop_per_second,memory_bytes,largest_error\n",
    );
    for line in lines {
        let (shape, operations) = (line.problem.shape(), line.operations);
        for (method, cell) in METHODS.into_iter().zip(&line.cells) {
            let sizes = format!("{},{},{},{causal}", shape.q_heads, shape.q_len, shape.head_dim);
            let rest = match cell {
                Cell::Done(Figures { time, bytes, error }) => {
                    let seconds = time.as_secs_f64();
                    let bytes = bytes.map_or(String::new(), |bytes| bytes.to_string());
                    format!(
                        "ok,{seconds:.6},{:.4},{bytes},{error:.2e}",
                        1e-9 * operations / seconds
                    )
                }
                Cell::Limit(_) => "over a limit,,,,".into(),
                Cell::NotRun(_) => "not run,,,,".into(),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(csv, "{},{sizes},{rest}", method.name());
        }
    }
    csv
}

/// Three figures and a unit.
pub fn readable(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1.0 => format!("{} ms", three(1e3 * s)),
        s => format!("{} s", three(s)),
    }
}

pub fn binary(bytes: u64) -> String {
    let (mut size, mut units) = (bytes as f64, ["B", "KiB", "MiB", "GiB", "TiB"].into_iter());
    let mut unit = units.next();
    while size >= 1000.0 {
        let Some(next) = units.next() else { break };
        (size, unit) = (size / 1024.0, Some(next));
    }
    format!("{} {}", three(size), unit.unwrap_or_default())
}

fn three(x: f64) -> String {
    let digits = if x >= 99.95 {
        0
    } else if x >= 9.995 {
        1
    } else {
        2
    };
    format!("{x:.digits$}")
}
