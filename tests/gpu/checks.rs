//! What the tests share: one check on every implementation, and a run of cases on one kernel.

use std::sync::OnceLock;

use wgpu_attention::{Choice, Error, Gpu, Inputs, LoopLimit, Output, Problem, cpu};

pub use wgpu_attention_support::answers::{Checked, EVERYTHING, FLASH, LSE, STAGED, Wants, answer};

use crate::kernels::{Walk, long_rows};
use crate::support::{PerLane, gpu};
use wgpu_attention_support::answers::TILE;
use wgpu_attention_support::cases;

/// The test's device, planned for as if its driver ended loops early: keys are split.
pub fn split_gpu() -> &'static Gpu {
    static GPU: PerLane<Gpu> = PerLane::new();
    GPU.get_or_init(|| limited(300))
}

pub fn limited(iterations: u32) -> Gpu {
    let planner = gpu().planner().clone();
    gpu().clone().with_attention(planner.with_loop_limit(LoopLimit::Iterations(iterations)))
}

/// Hands a problem's output to `check` once for each implementation: the definition and the twin on
/// the CPU, and every kernel that takes it, with all that each can give.
pub fn each(problem: &Problem, inputs: Inputs<'_>, mut check: impl FnMut(&str, &Output)) {
    let (with_lse, with_all) = (LSE(problem.clone()), EVERYTHING(problem.clone()));
    check("cpu", &cpu::attention(&with_all, inputs).expect("cpu"));
    check("cpu, twin", &cpu::flash(&with_lse, inputs, TILE, Some(64)).expect("twin"));
    Walk::new("each").each(problem, |kernel| check(kernel.name, &kernel.run(problem, inputs)));
}

/// The whole table, computed once.
pub fn table() -> &'static [Checked] {
    static TABLE: OnceLock<Vec<Checked>> = OnceLock::new();
    TABLE.get_or_init(|| cases::all().into_iter().map(Checked::new).collect())
}

/// Cases that between them have every operand and every way to hide keys.
pub fn some_of_all(name: &str) -> bool {
    let names = [
        "token-major",
        "gaps in O and LSE",
        "everything",
        "packed, everything",
        "lens, bias, mask, band",
    ];
    names.contains(&name) || name.starts_with("129 x 33")
}

/// One in eight of the table's cases, with all operands among them, and a 48th of the drawn ones, of which each is a kernel of its own to compile. Kernels take different ones; the exhaustive tests run the whole
/// table on each.
pub fn part(number: usize, choice: Choice) -> impl Iterator<Item = &'static Checked> {
    let some = table().iter().enumerate().filter(move |(at, checked)| {
        let case = &checked.case;
        let step = if case.name.starts_with("drawn") { 48 } else { 8 };
        at % step == number || some_of_all(&case.name)
    });
    let is_long = |checked: &&Checked| long_rows(choice, &checked.case.problem);
    let (long, some): (Vec<_>, Vec<_>) = some.map(|(_, checked)| checked).partition(is_long);
    println!("{choice}: {} cases of long rows left to the exhaustive tests", long.len());
    some.into_iter()
}

/// No output but O.
pub const NOTHING: Wants = |problem| problem;

/// Runs cases on one kernel and compares. Counts what was skipped because the device's limits do
/// not allow it; anything else that goes wrong is a failure.
pub struct Run<'a> {
    pub name: &'a str,
    pub gpu: &'a Gpu,
    pub choice: Choice,
    pub wants: Wants,
}

impl Run<'_> {
    /// Returns how many cases ran and how many were skipped.
    pub fn check<'c>(&self, cases: impl IntoIterator<Item = &'c Checked>) -> [usize; 2] {
        let (mut ran, mut skipped) = (0, 0);
        let (mut worst, mut worst_name) = (0.0, "none");
        let mut failures = Vec::new();
        for checked in cases {
            let problem = (self.wants)(checked.case.problem.clone());
            let name = checked.case.name.as_str();
            let got = pollster::block_on(checked.run(self.gpu, &problem, self.choice));
            let error = match got {
                Ok(got) => checked.compare(&problem, &got),
                Err(Error::Limit { .. }) => {
                    skipped += 1;
                    continue;
                }
                Err(error) => {
                    failures.push(format!("{name}: {error}"));
                    continue;
                }
            };
            ran += 1;
            if error > 1.0 {
                failures.push(format!("{name}: {error} times what is allowed"));
            }
            if error > worst {
                (worst, worst_name) = (error, name);
            }
        }
        println!("{}: {ran} ran, {skipped} skipped, worst {worst:.2} ({worst_name})", self.name);
        assert!(failures.is_empty(), "{}:\n{}", self.name, failures.join("\n"));
        [ran, skipped]
    }
}
