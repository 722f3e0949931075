//! Buffers that cannot be bound.

use wgpu_attention::{Buffers, Choice, Error, Layout, Method, Operand, Plan, Problem, Shape};

use super::{assert_same, tile, wrong_buffers};
use crate::program::{Program, Reference, USAGE};
use crate::support::{Data, max_error};

const SHAPE: Shape = Shape::self_attention(1, 2, 90, 4);

type Given = Vec<(Operand, wgpu::Buffer)>;

/// A plan with every operand there is, and a right buffer for each.
struct Call {
    problem: Problem,
    plan: Plan,
    given: Given,
    reference: Reference,
}

impl Call {
    fn new(program: &Program, stored: bool) -> Call {
        let problem = Problem::new(SHAPE).bias_shape(&[90, 90]).lse();
        let problem = if stored { problem.scores().weights() } else { problem };
        let choice = if stored { Choice::method(Method::Staged) } else { tile(32, 32) };
        let plan = program.split.plan_with(&problem, choice).expect("a plan");
        let data = Data::new(&problem, 3);
        let bias = data.bias.as_deref().expect("a bias");
        let mut given = vec![
            (Operand::Q, program.buffer(&data.q)),
            (Operand::K, program.buffer(&data.k)),
            (Operand::V, program.buffer(&data.v)),
            (Operand::Bias, program.buffer(bias)),
            (Operand::Scratch, program.empty(plan.scratch_bytes(), USAGE)),
        ];
        let mut written = vec![Operand::O, Operand::Lse];
        written.extend([Operand::Scores, Operand::Weights].iter().filter(|_| stored));
        given.extend(
            written.into_iter().map(|o| (o, program.empty(4 * problem.elements(o), USAGE))),
        );
        let reference = Reference::new(&problem, data.inputs()).expect("a reference");
        Call { problem, plan, given, reference }
    }

    fn bytes(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Scratch => self.plan.scratch_bytes(),
            _ => 4 * self.problem.elements(operand),
        }
    }

    fn buffer(&self, operand: Operand) -> &wgpu::Buffer {
        &self.given.iter().find(|g| g.0 == operand).expect("given").1
    }

    /// The right buffers, with one of them replaced, or left out.
    fn with(&self, operand: Operand, other: Option<&wgpu::Buffer>) -> Result<(), Error> {
        let kept = self.given.iter().filter(|g| g.0 != operand);
        let buffers = kept.fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
        let buffers = other.into_iter().fold(buffers, |all, buffer| all.with(operand, buffer));
        self.plan.bind(buffers).map(|_| ())
    }

    /// The next right call.
    fn good(&self, program: &Program) {
        let given = self.given.iter();
        let buffers = given.fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
        let bound = self.plan.bind(buffers).expect("right buffers");
        program.submit(|encoder| bound.encode_in(encoder));
        let error = max_error(&program.read(self.buffer(Operand::O)), &self.reference.want.o);
        assert!(error <= self.reference.tolerance(Operand::O));
    }
}

/// Q, K, V, O one after the other in one buffer of 2,880 elements.
fn arena() -> Problem {
    let layout = Layout::head_major(2, 90, 4);
    let operands = [Operand::Q, Operand::K, Operand::V, Operand::O];
    operands.into_iter().zip(0..).fold(Problem::new(SHAPE).arena(), |problem, (operand, at)| {
        problem.layout(operand, layout.at(720 * at))
    })
}

#[test]
fn missing_short_and_useless_buffers() {
    let program = Program::shared();
    for stored in [false, true] {
        let call = Call::new(program, stored);
        assert!(call.plan.scratch_bytes() > 0);
        let mut wrong = 0;
        for (operand, _) in &call.given {
            let (operand, bytes) = (*operand, call.bytes(*operand));
            let unit = if operand == Operand::Scratch { 1 } else { 4 };
            wrong +=
                wrong_buffers(program, operand, [bytes, unit], |buffer| call.with(operand, buffer));
        }
        call.good(program);
        println!("{wrong} wrong buffers");
    }
}

#[test]
fn operands_the_problem_does_not_have() {
    let program = Program::shared();
    let call = Call::new(program, false);
    let spare = program.empty(1 << 20, USAGE);
    for operand in [Operand::Scores, Operand::Weights, Operand::Arena] {
        let error = call.with(operand, Some(&spare)).expect_err("not wanted");
        assert_same("spare", &error, &Error::Unexpected { operand });
    }
    call.good(program);
    // One scratch buffer for every plan, those that need none included.
    let problem = Problem::new(SHAPE);
    let plan = program.attention.plan(&problem).expect("a plan");
    let buffers = Buffers::new(
        call.buffer(Operand::Q),
        call.buffer(Operand::K),
        call.buffer(Operand::V),
        call.buffer(Operand::O),
    );
    plan.bind(buffers.with(Operand::Scratch, &spare)).expect("scratch is never too much");
    for operand in [Operand::Bias, Operand::Lse] {
        let error = plan.bind(buffers.with(operand, &spare)).expect_err("not wanted");
        assert_same("spare", &error, &Error::Unexpected { operand });
    }
    // In an arena there is one buffer, and it is needed.
    let plan = program.attention.plan(&arena()).expect("a plan");
    let error = plan.bind(buffers).expect_err("four buffers for an arena");
    assert_same("arena", &error, &Error::Unexpected { operand: Operand::Q });
    let error = plan.bind(Buffers::default()).expect_err("nothing");
    assert_same("arena", &error, &Error::Missing { operand: Operand::Arena });
    let error = plan.bind(Buffers::arena(&program.empty(4 * 2879, USAGE))).expect_err("short");
    let want = Error::Length { operand: Operand::Arena, need: 2880, got: 2879 };
    assert_same("arena", &error, &want);
    plan.bind(Buffers::arena(&program.empty(4 * 2880, USAGE))).expect("an arena");
    program.check();
}

#[test]
fn outputs_that_share_memory() {
    let program = Program::shared();
    let need = "a buffer of its own, or Problem::arena for all operands but scratch";
    for stored in [false, true] {
        let call = Call::new(program, stored);
        let mut wrong = 0;
        let is_output =
            |o: Operand| !matches!(o, Operand::Q | Operand::K | Operand::V | Operand::Bias);
        // One buffer large enough for any two.
        let shared = program.empty(1 << 20, USAGE);
        for (at, (a, _)) in call.given.iter().enumerate() {
            for (b, _) in &call.given[at + 1..] {
                let (a, b) = (*a, *b);
                let kept = call.given.iter().filter(|g| g.0 != a && g.0 != b);
                let buffers =
                    kept.fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
                let result = call.plan.bind(buffers.with(a, &shared).with(b, &shared));
                if !is_output(a) && !is_output(b) {
                    result.expect("inputs may share");
                    continue;
                }
                match result.expect_err("an output shares memory") {
                    Error::Overlap { operand, other, need: why } => {
                        assert_eq!((operand.min(other), operand.max(other)), (a.min(b), a.max(b)));
                        assert!(is_output(operand), "{operand} is not written");
                        let want = Error::Overlap { operand, other, need };
                        assert_same(
                            "overlap",
                            &Error::Overlap { operand, other, need: why },
                            &want,
                        );
                    }
                    error => panic!("{a} and {b}: {error}"),
                }
                wrong += 1;
            }
        }
        call.good(program);
        println!("{wrong} shared outputs");
    }
    // Scratch is never in the arena.
    let plan = program.split.plan_with(&arena(), tile(32, 32)).expect("a plan");
    let shared = program.empty(1 << 20, USAGE);
    let given = Buffers::arena(&shared).with(Operand::Scratch, &shared);
    let error = plan.bind(given).expect_err("scratch in the arena");
    let want = Error::Overlap { operand: Operand::Scratch, other: Operand::Arena, need };
    assert_same("arena", &error, &want);
    program.check();
}

/// Only wgpu knows these: it says so, and nothing reaches its handler.
#[test]
fn buffers_of_another_device_and_destroyed_ones() {
    let program = Program::new(wgpu::Limits::default());
    let stranger = program.neighbour(wgpu::Limits::default());
    let call = Call::new(&program, true);
    for (operand, _) in &call.given {
        let theirs = stranger.empty(call.bytes(*operand), USAGE);
        let gone = program.empty(call.bytes(*operand), USAGE);
        gone.destroy();
        for (name, buffer) in [("another device's", theirs), ("a destroyed", gone)] {
            let name = format!("{name} {operand}");
            let error = call.with(*operand, Some(&buffer)).expect_err(&name);
            let Error::Device(why) = &error else { panic!("{name}: {error:?}") };
            assert!(!why.is_empty(), "{name}");
            assert_same(&name, &error, &Error::Device(why.clone()));
        }
        program.check();
        stranger.check();
    }
    // Awaited, the same.
    let theirs = stranger.empty(call.bytes(Operand::Q), USAGE);
    let given = call.given.iter();
    let buffers = given.fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
    let result = pollster::block_on(call.plan.bind_async(buffers.with(Operand::Q, &theirs)));
    assert!(matches!(result, Err(Error::Device(_))), "{result:?}");
    call.good(&program);
}

/// wgpu tells a queue's mistake to the queue's own device. The Bound's device goes on.
#[test]
fn a_queue_of_another_device() {
    let program = Program::new(wgpu::Limits::default());
    let stranger = program.neighbour(wgpu::Limits::default());
    let call = Call::new(&program, false);
    let given = call.given.iter();
    let buffers = given.fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
    let bound = call.plan.bind(buffers).expect("right buffers");
    let set = bound.set_lengths(&stranger.queue, 3, 3);
    let told = stranger.uncaptured();
    assert!(set.is_err() || told.len() == 1, "nobody was told: {set:?} {told:?}");
    // Nothing was set.
    program.submit(|encoder| bound.encode_in(encoder));
    let error = max_error(&program.read(call.buffer(Operand::O)), &call.reference.want.o);
    assert!(error <= call.reference.tolerance(Operand::O));
    bound.set_lengths(&program.queue, 90, 90).expect("the right queue");
    call.good(&program);
}
