//! Buffers of projections and layers that cannot be bound.

use wgpu_attention::{
    Buffers, Choice, Error, Method, MultiHead, MultiHeadPlan, Operand, Problem, Projection,
    ProjectionInputs, ProjectionPlan, Shape, Tile, cpu,
};

use super::errors::good;
use super::{TOLERANCE, Tensors, operand as random};
use crate::errors::{assert_same, wrong_buffers};
use crate::program::{Program, USAGE};
use crate::support::max_error;

const OVERLAP: &str = "a buffer of its own, or Problem::arena for all operands but scratch";
const OUTPUTS: [Operand; 6] = [
    Operand::Y,
    Operand::Lse,
    Operand::Scores,
    Operand::Weights,
    Operand::Projected,
    Operand::Scratch,
];

/// Something that is bound and recorded.
enum Planned {
    Projection(ProjectionPlan),
    Layer(Box<MultiHeadPlan>),
}

/// A plan with every operand there is, and a right buffer for each.
struct Call {
    plan: Planned,
    given: Vec<(Operand, wgpu::Buffer)>,
    want: Vec<f32>,
}

impl Call {
    fn projection(program: &Program) -> Call {
        let projection = Projection::new(9, 6, 7).bias().residual();
        let plan = program.attention.plan_projection(&projection).expect("a plan");
        let inputs = [Operand::X, Operand::W, Operand::B, Operand::Residual];
        let data = inputs.map(|o| random(&projection, o, 5));
        let [x, w, b, residual] = &data;
        let inputs_on_host = ProjectionInputs::new(x, w).bias(b).residual(residual);
        let want = cpu::project(&projection, inputs_on_host).expect("cpu");
        let mut given: Vec<_> =
            inputs.into_iter().zip(&data).map(|(o, x)| (o, program.buffer(x))).collect();
        given.push((Operand::Y, program.empty(4 * projection.elements(Operand::Y), USAGE)));
        Call { plan: Planned::Projection(plan), given, want }
    }

    /// Keys are split, so that scratch holds partial results besides the mixed values.
    fn layer(program: &Program, stored: bool) -> Call {
        let problem = Problem::new(Shape::self_attention(1, 2, 90, 4));
        let problem = problem.bias_shape(&[90, 90]).lse();
        let problem = if stored { problem.scores().weights() } else { problem };
        let choice = match stored {
            true => Choice::method(Method::Staged),
            false => Choice::tile(Tile { queries: 32, keys: 32 }),
        };
        let layer = MultiHead::new(8, problem).context(6).biases().residual();
        let plan = program.split.plan_multi_head_async(&layer, choice);
        let plan = pollster::block_on(plan).expect("a plan");
        let tensors = Tensors::new(&layer, 3);
        let mut given: Vec<_> =
            tensors.given().map(|(operand, x)| (operand, program.buffer(x))).collect();
        assert_eq!(given.len(), 11, "every operand");
        let sized = OUTPUTS.into_iter().map(|operand| match operand {
            Operand::Projected => (operand, plan.projected_bytes()),
            Operand::Scratch => (operand, plan.scratch_bytes()),
            _ => (operand, 4 * layer.elements(operand)),
        });
        given.extend(sized.filter(|x| x.1 > 0).map(|(o, bytes)| (o, program.empty(bytes, USAGE))));
        let want = cpu::multi_head(&layer, tensors.inputs()).expect("cpu").y;
        Call { plan: Planned::Layer(Box::new(plan)), given, want }
    }

    fn bind(&self, buffers: Buffers<'_>) -> Result<(), Error> {
        match &self.plan {
            Planned::Projection(plan) => plan.bind(buffers).map(|_| ()),
            Planned::Layer(plan) => plan.bind(buffers).map(|_| ()),
        }
    }

    fn right(&self) -> Buffers<'_> {
        self.given.iter().fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer))
    }

    /// The right buffers, with one of them replaced, or left out.
    fn with(&self, operand: Operand, other: Option<&wgpu::Buffer>) -> Result<(), Error> {
        let kept = self.given.iter().filter(|g| g.0 != operand);
        let buffers = kept.fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
        self.bind(other.into_iter().fold(buffers, |all, buffer| all.with(operand, buffer)))
    }

    /// The next right call.
    fn good(&self, program: &Program) {
        match &self.plan {
            Planned::Projection(plan) => {
                let bound = plan.bind(self.right()).expect("right buffers");
                program.submit(|encoder| bound.encode_in(encoder));
            }
            Planned::Layer(plan) => {
                let bound = plan.bind(self.right()).expect("right buffers");
                program.submit(|encoder| bound.encode_in(encoder));
            }
        }
        let y = &self.given.iter().find(|g| g.0 == Operand::Y).expect("given").1;
        let error = max_error(&program.read(y), &self.want);
        assert!(error <= TOLERANCE, "{error}");
    }
}

fn calls(program: &Program) -> [Call; 3] {
    [Call::projection(program), Call::layer(program, false), Call::layer(program, true)]
}

#[test]
fn missing_short_and_useless_buffers() {
    let program = Program::shared();
    for call in calls(program) {
        let mut wrong = 0;
        for (operand, right) in &call.given {
            let (operand, bytes) = (*operand, right.size());
            let is_memory = matches!(operand, Operand::Projected | Operand::Scratch);
            let unit = if is_memory { 1 } else { 4 };
            wrong +=
                wrong_buffers(program, operand, [bytes, unit], |buffer| call.with(operand, buffer));
        }
        call.good(program);
        println!("{wrong} wrong buffers");
    }
    good();
}

#[test]
fn outputs_that_share_memory() {
    let program = Program::shared();
    // One buffer large enough for any two.
    let shared = program.empty(1 << 20, USAGE);
    for call in calls(program) {
        let mut wrong = 0;
        for (at, (a, _)) in call.given.iter().enumerate() {
            for (b, _) in &call.given[at + 1..] {
                let (a, b) = (*a, *b);
                let result = call.bind(call.right().with(a, &shared).with(b, &shared));
                if !OUTPUTS.contains(&a) && !OUTPUTS.contains(&b) {
                    result.expect("inputs may share");
                    continue;
                }
                let error = result.expect_err("an output shares memory");
                let Error::Overlap { operand, other, .. } = error else {
                    panic!("{a} and {b}: {error}")
                };
                assert_eq!((operand.min(other), operand.max(other)), (a.min(b), a.max(b)));
                assert!(OUTPUTS.contains(&operand), "{operand} is not written");
                assert_same("overlap", &error, &Error::Overlap { operand, other, need: OVERLAP });
                wrong += 1;
            }
        }
        assert!(wrong >= 4);
        call.good(program);
        println!("{wrong} shared outputs");
    }
    good();
}

#[test]
fn operands_nobody_asked_for() {
    let program = Program::shared();
    let spare = program.empty(1 << 20, USAGE);
    let projection = Call::projection(program);
    let layer = Call::layer(program, false);
    use Operand::{Arena, B, Bias, K, O, Q, Residual, Scores, V, W, Weights, Wq};
    for operand in [Q, K, V, O, Bias, Arena, Wq] {
        let error = projection.with(operand, Some(&spare)).expect_err("not wanted");
        assert_same("projection", &error, &Error::Unexpected { operand });
    }
    for operand in [Q, K, V, O, Arena, W, B, Residual, Scores, Weights] {
        let error = layer.with(operand, Some(&spare)).expect_err("not wanted");
        assert_same("layer", &error, &Error::Unexpected { operand });
    }
    // One working memory for every plan, those that need none included.
    for operand in [Operand::Scratch, Operand::Projected] {
        projection.with(operand, Some(&spare)).expect("memory is never too much");
    }
    // A plain layer takes no context, biases, bias.
    let plain = MultiHead::new(8, Problem::new(Shape::self_attention(1, 2, 9, 4)));
    let plan = program.attention.plan_multi_head(&plain).expect("a plan");
    for operand in [Operand::Context, Operand::Bq, Operand::Bo, Bias, Operand::Lse] {
        let x = program.empty(1 << 12, USAGE);
        let y = program.empty(1 << 12, USAGE);
        let projected = program.empty(1 << 14, USAGE);
        let scratch = program.empty(1 << 14, USAGE);
        let weights = super::WEIGHTS.into_iter().fold(Buffers::default(), |all, o| all.with(o, &x));
        let right = weights.with(Operand::X, &x).with(Operand::Y, &y);
        let right = right.with(Operand::Projected, &projected).with(Operand::Scratch, &scratch);
        plan.bind(right).expect("right buffers");
        let error = plan.bind(right.with(operand, &spare)).expect_err("not wanted");
        assert_same("plain", &error, &Error::Unexpected { operand });
    }
    projection.good(program);
    layer.good(program);
    good();
}
