//! One line of the table: errors and times of a case.

use std::fmt;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use wgpu_attention::{Choice, Error, Gpu, Method, cpu};

use super::cases::Case;
use wgpu_attention_support::resident::Resident;

pub const METHODS: [Method; 2] = [Method::Staged, Method::Flash];

/// Progress that one case makes: right answer, CPU time, one for each method.
pub const STEPS: usize = 2 + METHODS.len();

/// Runs are repeated up to this often, as long as they take less than the budget together.
const RUNS: usize = 5;
const BUDGET: Duration = Duration::from_secs(1);

/// Beyond so many scores, only evenly spaced rows are checked.
const MOST_SCORES: u64 = 1 << 24;

/// The fused method goes by what it is, not by the kernel's name.
pub fn name(method: Method) -> &'static str {
    match method {
        Method::Flash => "fused",
        _ => "staged",
    }
}

/// What is known of one method on one case.
pub struct Figures {
    pub absolute: f64,
    relative: f64,
    time: Duration,
    plan: String,
}

/// What is known of one case.
pub struct Line {
    pub name: String,
    /// In the order of [`METHODS`]; an error says which limit of the device does not allow it.
    pub gpu: [Result<Figures, Error>; 2],
    cpu: Duration,
    /// One in so many rows was checked.
    every: usize,
}

/// The two lines above the first [`Line`].
pub fn header() -> String {
    let [error, time] = ["largest error, absolute / relative", "median time"];
    format!(
        "{:27}  {error:^36}  {time:^28}\n{:27}  {:>17}  {:>17}  {:>8}  {:>8}  {:>8}",
        "", "problem", "staged", "fused", "staged", "fused", "CPU"
    )
}

/// The right answers of some rows of the output.
struct Expected {
    width: usize,
    every: usize,
    rows: Vec<Vec<f64>>,
}

impl Line {
    pub fn measure(gpu: &Gpu, case: &Case, bar: &ProgressBar) -> Result<Line, Error> {
        let step = |what: &str| {
            bar.inc(1);
            bar.set_message(format!("{}: {what}", case.name));
        };
        bar.set_message(format!("{}: f64", case.name));
        let expected = Expected::new(case)?;
        step("CPU");
        let inputs = case.operands.inputs();
        let cpu = median(|| cpu::attention(&case.problem, inputs).map(drop))?;
        let mut methods = METHODS.map(|method| {
            step(name(method));
            Figures::measure(gpu, case, method, &expected)
        });
        bar.inc(1);
        for result in &mut methods {
            // A limit is the device's to set; anything else ends the comparison.
            if let Err(error) = result {
                if !matches!(error, Error::Limit { .. }) {
                    return Err(error.clone());
                }
            }
        }
        Ok(Line { name: case.name.clone(), gpu: methods, cpu, every: expected.every })
    }

    /// What does not fit the table.
    pub fn notes(&self, verbose: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if self.every > 1 {
            notes.push(format!("    checked: one row in {}", self.every));
        }
        for (result, method) in self.gpu.iter().zip(METHODS) {
            match result {
                Err(error) => notes.push(format!("    {}: {error}", name(method))),
                Ok(figures) if verbose => notes.push(figures.plan.clone()),
                Ok(_) => {}
            }
        }
        notes
    }
}

impl Figures {
    fn measure(
        gpu: &Gpu,
        case: &Case,
        method: Method,
        expected: &Expected,
    ) -> Result<Figures, Error> {
        let plan = gpu.planner().plan_with(&case.problem, Choice::method(method))?;
        let resident = Resident::new(gpu, &plan, case.operands.inputs())?;
        resident.run()?; // The first run pays for the uploads.
        let time = median(|| resident.run())?;
        let [absolute, relative] = expected.errors(&resident.read()?);
        let plan = format!("    {}", plan.describe()).replace('\n', "\n    ");
        Ok(Figures { absolute, relative, time, plan })
    }
}

impl Expected {
    fn new(case: &Case) -> Result<Expected, Error> {
        let shape = case.problem.shape();
        let [q_heads, q_len] = [shape.q_heads, shape.q_len].map(|n| n as usize);
        let width = shape.value_dim as usize;
        let count = shape.batch as usize * q_heads * q_len;
        let scores = count as u64 * u64::from(shape.kv_len);
        // Odd, so that every row of a tile has its turn.
        let every = scores.div_ceil(MOST_SCORES) as usize | 1;
        let row = |at: usize| {
            if let Some(out) = &case.out {
                return Ok(out[at * width..][..width].to_vec());
            }
            let place = [at / q_len / q_heads, at / q_len % q_heads, at % q_len];
            let row = cpu::row(&case.problem, case.operands.inputs(), place.map(|n| n as u32));
            row.map(|row| row.o)
        };
        let rows = (0..count).step_by(every).map(row).collect::<Result<_, _>>()?;
        Ok(Expected { width, every, rows })
    }

    /// The largest absolute error, and the largest relative to the largest value of its row.
    fn errors(&self, got: &[f32]) -> [f64; 2] {
        let rows = got.chunks(self.width).step_by(self.every);
        rows.zip(&self.rows).fold([0.0f64; 2], |most, (got, want)| {
            let error = absolute(got, want);
            let largest = want.iter().fold(f64::MIN_POSITIVE, |most, x| most.max(x.abs()));
            [most[0].max(error), most[1].max(error / largest)]
        })
    }
}

/// The largest absolute error; infinite where one is not a number, or where the lengths differ.
pub fn absolute(got: &[f32], want: &[f64]) -> f64 {
    if got.len() != want.len() {
        return f64::INFINITY;
    }
    let error = |(&got, want): (&f32, &f64)| (f64::from(got) - want).abs();
    let errors = got.iter().zip(want).map(error);
    errors.fold(0.0, |most, error| if error.is_nan() { f64::INFINITY } else { most.max(error) })
}

fn median(mut call: impl FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.is_empty() || (times.len() < RUNS && begin.elapsed() < BUDGET) {
        let begin = Instant::now();
        call()?;
        times.push(begin.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:27}", self.name)?;
        for figures in &self.gpu {
            match figures {
                Ok(Figures { absolute, relative, .. }) => {
                    write!(f, "  {:>17}", format!("{absolute:.1e} / {relative:.1e}"))?;
                }
                Err(_) => write!(f, "  {:>17}", "over a limit")?,
            }
        }
        for figures in &self.gpu {
            let time = figures.as_ref().map_or("-".into(), |figures| readable(figures.time));
            write!(f, "  {time:>8}")?;
        }
        write!(f, "  {:>8}", readable(self.cpu))
    }
}

fn readable(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1.0 => format!("{:.2} ms", 1e3 * s),
        s => format!("{s:.2} s"),
    }
}
