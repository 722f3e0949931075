//! What the tests share: a case with its answer and tolerances, and a run of cases on one kernel.

use std::sync::OnceLock;

use wgpu_attention::{
    Attention, Choice, Error, Gpu, Inputs, LoopLimit, Method, Options, Output, Problem, Tile, cpu,
};

use crate::cases::{self, Case};
use crate::support::{Data, gpu, max_error};

pub const FLASH: Choice = Choice::method(Method::Flash);
pub const STAGED: Choice = Choice::method(Method::Staged);
const TILE: Tile = Tile { queries: 32, keys: 32 };

/// The device of all tests, planned for as if its driver ended loops early: keys are split.
pub fn split_gpu() -> &'static Gpu {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    GPU.get_or_init(|| limited(300))
}

pub fn limited(iterations: u32) -> Gpu {
    let options = Options::default().loop_limit(LoopLimit::Iterations(iterations));
    gpu().clone().with_attention(Attention::with(gpu().device(), options))
}

/// Hands a problem's output to `check` once for each implementation: the definition and the twin
/// on the CPU, the fused and the staged kernels, and both with split keys if there are enough.
/// Scores and weights come from those that form them, the LSE from all.
pub fn each(problem: &Problem, inputs: Inputs<'_>, mut check: impl FnMut(&str, &Output)) {
    let (with_lse, with_all) = (LSE(problem.clone()), EVERYTHING(problem.clone()));
    check("cpu", &cpu::attention(&with_all, inputs).expect("cpu"));
    check("cpu, twin", &cpu::flash(&with_lse, inputs, TILE, Some(64)).expect("twin"));
    let kernels = [
        ("fused", gpu(), FLASH, &with_lse),
        ("staged", gpu(), STAGED, &with_all),
        ("fused, split", split_gpu(), Choice::tile(TILE), &with_lse),
        ("staged, split", split_gpu(), STAGED, &with_all),
    ];
    let splits = problem.shape().kv_len > 64;
    for (name, gpu, choice, problem) in kernels.into_iter().take(if splits { 4 } else { 2 }) {
        let plan = gpu.planner().plan_with(problem, choice).expect(name);
        let split = plan.describe().split_keys.is_some();
        assert!(split || !name.ends_with("split"), "{name}: {problem:?}");
        check(name, &gpu.attention_with(problem, inputs, choice).expect(name));
    }
}

/// The answer, and how far off one may be: O, LSE, scores and weights.
///
/// 8 times the error of plain f32 arithmetic, and no less than a few roundings. The twin forms no
/// scores: they are allowed what their logarithmic sum is, without a softcap, which brings scores
/// closer to each other and to the truth. Weights are allowed half of it: dp = p (1 - p) ds at
/// most twice.
pub fn answer(problem: &Problem, inputs: Inputs<'_>) -> (Output, [f32; 4]) {
    let least = |want: &[f32]| {
        let finite = want.iter().filter(|x| x.is_finite());
        1.5e-6 * finite.fold(1.0, |most: f32, x| most.max(x.abs()))
    };
    let run = |problem: &Problem| {
        let twin = cpu::flash(&LSE(problem.clone()), inputs, TILE, None).expect("a good call");
        let answer = cpu::attention(&EVERYTHING(problem.clone()), inputs).expect("a good call");
        let part = |part: &Option<Vec<f32>>| part.clone().expect("wanted");
        let lse_error = 8.0 * max_error(&part(&twin.lse), &part(&answer.lse));
        let tolerance = [
            least(&answer.o).max(8.0 * max_error(&twin.o, &answer.o)),
            least(&part(&answer.lse)).max(lse_error),
            least(&part(&answer.scores)).max(lse_error),
        ];
        (answer, tolerance)
    };
    let (answer, [o, lse, mut scores]) = run(problem);
    let uncapped = problem.clone().softcap(0.0);
    if uncapped != *problem {
        scores = scores.max(run(&uncapped).1[2]);
    }
    let tolerance = [o, lse, scores, 1.5e-6 + scores / 2.0];
    assert!(tolerance.iter().all(|t| t.is_finite()), "{problem:?}: {tolerance:?}");
    (answer, tolerance)
}

/// A case with its operands, the right answer, and how far off a kernel may be.
pub struct Checked {
    pub case: Case,
    pub data: Data,
    pub reference: Output,
    /// Of O, LSE, scores and weights.
    pub tolerance: [f32; 4],
}

impl Checked {
    pub fn new(case: Case) -> Checked {
        let mut data = Data::new(&case.problem, case.seed);
        if let (Some(bias), n @ 1..) = (&mut data.bias, case.excluded) {
            bias.iter_mut().skip(n / 2).step_by(n).for_each(|bias| *bias = f32::NEG_INFINITY);
        }
        let (reference, tolerance) = answer(&case.problem, data.inputs());
        Checked { case, data, reference, tolerance }
    }

    /// Largest error as a part of what is allowed, over all outputs that `got` should have.
    pub fn compare(&self, problem: &Problem, got: &Output) -> f32 {
        let (want, wanted) = (&self.reference, problem.outputs());
        let parts = [
            (true, Some(&got.o), Some(&want.o)),
            (wanted.lse, got.lse.as_ref(), want.lse.as_ref()),
            (wanted.scores, got.scores.as_ref(), want.scores.as_ref()),
            (wanted.weights, got.weights.as_ref(), want.weights.as_ref()),
        ];
        let error = |((wanted, got, want), tolerance): ((bool, Option<_>, Option<_>), f32)| {
            assert_eq!(wanted, got.is_some(), "{}", self.case.name);
            let (Some(got), Some(want)): (Option<&Vec<f32>>, Option<&Vec<f32>>) = (got, want)
            else {
                return 0.0;
            };
            max_error(got, want) / tolerance
        };
        parts.into_iter().zip(self.tolerance).map(error).fold(0.0, f32::max)
    }
}

/// The whole table, computed once.
pub fn table() -> &'static [Checked] {
    static TABLE: OnceLock<Vec<Checked>> = OnceLock::new();
    TABLE.get_or_init(|| cases::all().into_iter().map(Checked::new).collect())
}

/// Which outputs a run wants besides O.
pub type Wants = fn(Problem) -> Problem;

pub const LSE: Wants = Problem::lse;
pub const NOTHING: Wants = |problem| problem;
pub const EVERYTHING: Wants = |problem| problem.lse().scores().weights();

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
            let error = match self.gpu.attention_with(&problem, checked.data.inputs(), self.choice)
            {
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
