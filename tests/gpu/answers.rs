//! A case with its right answer, and how far off a kernel may be.

use wgpu_attention::{Choice, Inputs, Method, Output, Problem, Tile, cpu};

use crate::cases::Case;
use crate::data::{Data, max_error};

pub const FLASH: Choice = Choice::method(Method::Flash);
pub const STAGED: Choice = Choice::method(Method::Staged);
pub const TILE: Tile = Tile { queries: 32, keys: 32 };

/// Which outputs a run wants besides O.
pub type Wants = fn(Problem) -> Problem;

pub const LSE: Wants = Problem::lse;
pub const EVERYTHING: Wants = |problem| problem.lse().scores().weights();

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
