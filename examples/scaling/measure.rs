//! One method at one number of tokens: checked, then timed.

use std::error::Error as StdError;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use wgpu_attention::{Choice, Error, Gpu, Operand, Problem, cpu};

use wgpu_attention_support::resident::{Operands, Resident};

/// Largest absolute error against f64.
const TOLERANCE: f64 = 1e-5;
/// Rows that are checked: spread over all heads and tokens.
const CHECKED: u64 = 24;
/// Most runs behind one time.
const RUNS: usize = 9;

/// What is measured, in the order of the table.
pub const METHODS: [Method; 3] = [Method::Cpu, Method::Staged, Method::Fused];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// The reference in f64, on all cores
    Cpu,
    /// Three kernels, with the scores stored between them
    Staged,
    /// One kernel that never stores them
    Fused,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Cpu => "cpu",
            Method::Staged => "staged",
            Method::Fused => "fused",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Method::Cpu => "CPU reference",
            _ => self.name(),
        }
    }

    fn choice(self) -> Choice {
        Choice::method(match self {
            Method::Staged => wgpu_attention::Method::Staged,
            _ => wgpu_attention::Method::Flash,
        })
    }
}

/// What is known of one method at one number of tokens.
pub enum Cell {
    Done(Figures),
    /// The device's limits do not allow it.
    Limit(Error),
    NotRun(&'static str),
}

impl Cell {
    pub fn figures(&self) -> Option<&Figures> {
        match self {
            Cell::Done(figures) => Some(figures),
            _ => None,
        }
    }
}

pub struct Figures {
    pub time: Duration,
    /// Beyond Q, K and V; of the kernels only.
    pub bytes: Option<u64>,
    /// Largest absolute error of the checked rows.
    pub error: f64,
}

/// All methods at one number of tokens.
pub struct Line {
    pub problem: Problem,
    /// Of q . k and of p v, a multiply-add counted as two.
    pub operations: f64,
    /// In the order of [`METHODS`].
    pub cells: Vec<Cell>,
}

impl Line {
    pub fn tokens(&self) -> u32 {
        self.problem.shape().q_len
    }

    pub fn figures(&self, method: Method) -> Option<&Figures> {
        self.cells[method as usize].figures()
    }
}

/// One problem with its numbers, and the right answers of some rows.
pub struct Case {
    pub problem: Problem,
    operands: Operands,
    /// First element in O, row.
    rows: Vec<(usize, Vec<f64>)>,
}

impl Case {
    pub fn new(problem: Problem) -> Result<Case, Error> {
        problem.validate()?;
        let operands = Operands::normal(&problem);
        let shape = problem.shape();
        let last = u64::from(shape.q_heads) * u64::from(shape.q_len) - 1;
        let row = |at: u64| {
            let (head, token) = (at / u64::from(shape.q_len), at % u64::from(shape.q_len));
            let row = cpu::row(&problem, operands.inputs(), [0, head as u32, token as u32])?;
            Ok((at as usize * shape.value_dim as usize, row.o))
        };
        // The first, the last, and evenly between.
        let rows =
            (0..CHECKED).map(|at| row(at * last / (CHECKED - 1))).collect::<Result<_, _>>()?;
        Ok(Case { problem, operands, rows })
    }

    /// A wrong answer is an error: there is no use in timing it.
    pub fn measure(
        &self,
        gpu: &Gpu,
        method: Method,
        budget: f64,
    ) -> Result<Cell, Box<dyn StdError>> {
        if method == Method::Cpu {
            let run = || cpu::attention(&self.problem, self.operands.inputs());
            let error = self.check(method, &run()?.o)?;
            let time = median(budget, || run().map(drop))?;
            return Ok(Cell::Done(Figures { time, bytes: None, error }));
        }
        let plan = match gpu.planner().plan_with(&self.problem, method.choice()) {
            Err(error @ Error::Limit { .. }) => return Ok(Cell::Limit(error)),
            plan => plan?,
        };
        let resident = Resident::new(gpu, &plan, self.operands.inputs())?;
        resident.run()?;
        let error = self.check(method, &resident.read()?)?;
        let time = median(budget, || resident.run())?;
        let output = 4 * self.problem.elements(Operand::O);
        let bytes = Some(output + plan.scratch_bytes() + plan.owned_bytes());
        Ok(Cell::Done(Figures { time, bytes, error }))
    }

    fn check(&self, method: Method, o: &[f32]) -> Result<f64, String> {
        let mut largest = 0.0f64;
        for (first, row) in &self.rows {
            for (got, want) in o[*first..].iter().zip(row) {
                let error = (f64::from(*got) - want).abs();
                if error.is_nan() || error > TOLERANCE {
                    let (name, n) = (method.name(), self.problem.shape().q_len);
                    return Err(format!(
                        "{name}, {n} tokens: {got} for {want}, off by {error:.1e}"
                    ));
                }
                largest = largest.max(error);
            }
        }
        Ok(largest)
    }
}

/// Of as many runs as fit the budget.
fn median(budget: f64, mut run: impl FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
    let mut times = Vec::new();
    let mut spent = Duration::ZERO;
    while times.is_empty() || (times.len() < RUNS && spent.as_secs_f64() < budget) {
        let begin = Instant::now();
        run()?;
        times.push(begin.elapsed());
        spent += begin.elapsed();
    }
    times.sort();
    Ok(times[times.len() / 2])
}
