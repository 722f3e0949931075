//! A case with its right answer, and how far off a kernel may be.

use wgpu_attention::half::{bf16, f16};
use wgpu_attention::{
    Choice, Element, Error, Gpu, Group, Inputs, Method, Output, Problem, Scalar, Tile, cpu,
};

use crate::cases::Case;
use crate::data::{Data, max_error, max_error_of, rounding};

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
        let mut data = Data::new(&case.problem, case.seed).rounded(case.types);
        if let (Some(bias), n @ 1..) = (&mut data.bias, case.excluded) {
            bias.iter_mut().skip(n / 2).step_by(n).for_each(|bias| *bias = f32::NEG_INFINITY);
        }
        data.given = case.given.clone();
        if case.poisoned {
            data.poison(&case.problem);
        }
        let (reference, tolerance) = answer(&case.problem, data.inputs());
        Checked { case, data, reference, tolerance }
    }

    /// The problem of a host call that has its operands stored as the case says.
    pub fn stored_problem(&self) -> Problem {
        let [queries, keys] = self.case.types;
        self.case.problem.clone().element(Group::Queries, queries).element(Group::Keys, keys)
    }

    /// The host call, its operands stored as the case says; O as f32.
    pub async fn run(&self, gpu: &Gpu, problem: &Problem, choice: Choice) -> Result<Output, Error> {
        match self.case.types[0] {
            Element::F16 => self.with_queries::<f16>(gpu, problem, choice).await,
            Element::Bf16 => self.with_queries::<bf16>(gpu, problem, choice).await,
            _ => self.with_queries::<f32>(gpu, problem, choice).await,
        }
    }

    async fn with_queries<T: Scalar>(
        &self,
        gpu: &Gpu,
        problem: &Problem,
        choice: Choice,
    ) -> Result<Output, Error> {
        match self.case.types[1] {
            Element::F16 => self.with_types::<T, f16>(gpu, problem, choice).await,
            Element::Bf16 => self.with_types::<T, bf16>(gpu, problem, choice).await,
            _ => self.with_types::<T, f32>(gpu, problem, choice).await,
        }
    }

    async fn with_types<T: Scalar, C: Scalar>(
        &self,
        gpu: &Gpu,
        problem: &Problem,
        choice: Choice,
    ) -> Result<Output, Error> {
        let Data { q, k, v, .. } = &self.data;
        let (q, k, v) = (stored::<T>(q), stored::<C>(k), stored::<C>(v));
        let mut inputs = Inputs::new(&q, &k, &v);
        inputs.extras = self.data.inputs().extras;
        let got = gpu.attention_async(problem, inputs, choice).await?;
        let mut output = self.reference.clone();
        output.o = got.o.iter().map(|x| x.to_f64() as f32).collect();
        (output.lse, output.scores, output.weights) = (got.lse, got.scores, got.weights);
        Ok(output)
    }

    /// Largest error as a part of what is allowed, over all outputs that `got` should have.
    pub fn compare(&self, problem: &Problem, got: &Output) -> f32 {
        let (want, wanted) = (&self.reference, problem.outputs());
        let [o, lse, scores, weights] = self.tolerance;
        // Rounding to the storage type comes on top, of what is right or a little off.
        let [near_one, near_zero] = rounding(self.case.types[0]);
        let rounded = |want: f32| o + near_one * (want.abs() + o) + near_zero;
        let error = max_error_of(&got.o, &want.o, rounded);
        let parts = [
            (wanted.lse, &got.lse, &want.lse, lse),
            (wanted.scores, &got.scores, &want.scores, scores),
            (wanted.weights, &got.weights, &want.weights, weights),
        ];
        parts.into_iter().fold(error, |most, (wanted, got, want, tolerance)| {
            assert_eq!(wanted, got.is_some(), "{}", self.case.name);
            match (got, want) {
                (Some(got), Some(want)) => most.max(max_error(got, want) / tolerance),
                _ => most,
            }
        })
    }
}

/// Numbers as they are stored.
pub fn stored<T: Scalar>(x: &[f32]) -> Vec<T> {
    x.iter().map(|&x| T::from_f64(x.into())).collect()
}
