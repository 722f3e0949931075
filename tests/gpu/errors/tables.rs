//! Buffers of a mask and of tables that cannot be bound, and lengths that cannot be set.

use wgpu_attention::{
    Align, Bound, Buffers, Choice, Error, Inputs, Method, Operand, Problem, Shape,
};

use super::{assert_same, tile};
use crate::program::{Program, Reference, USAGE};
use crate::support::{max_error, normal};

const SHAPE: Shape = Shape { q_len: 9, ..Shape::self_attention(2, 2, 40, 4) };
const STORAGE: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE;
const MAY: [bool; 40] = [true; 40];
/// q_lens, then kv_lens.
const LENS: [u32; 4] = [9, 4, 40, 17];
const BOUNDS: [u32; 4] = [0, 9, 0, 40];

fn lengths() -> Problem {
    Problem::new(SHAPE).causal().align(Align::BottomRight).mask_shape(&[40]).q_lens().kv_lens()
}

/// A plan's right buffers.
struct Call {
    problem: Problem,
    plan: wgpu_attention::Plan,
    given: Vec<(Operand, wgpu::Buffer)>,
    inputs: [Vec<f32>; 3],
}

impl Call {
    fn new(program: &Program, problem: Problem, choice: Choice, tables: &[u32]) -> Call {
        let plan = program.attention.plan_with(&problem, choice).expect("a plan");
        let of = |o: Operand| normal(problem.elements(o) as usize, 3 + o as u64);
        let inputs = [Operand::Q, Operand::K, Operand::V].map(of);
        let scratch = program.empty(plan.scratch_bytes().max(4), USAGE);
        let mut given = vec![
            (Operand::O, program.empty(problem.bytes(Operand::O), USAGE)),
            (Operand::Scratch, scratch),
        ];
        let named = [Operand::Q, Operand::K, Operand::V].into_iter().zip(&inputs);
        given.extend(named.map(|(operand, x)| (operand, program.buffer(x))));
        let words = [(Operand::Mask, &[u32::MAX; 2][..]), (Operand::Tables, tables)];
        for (operand, words) in words {
            if problem.elements(operand) > 0 {
                let words: Vec<f32> = words.iter().map(|&word| f32::from_bits(word)).collect();
                given.push((operand, program.buffer(&words)));
            }
        }
        Call { problem, plan, given, inputs }
    }

    /// The right buffers, with one of them replaced, or left out.
    fn with(&self, operand: Operand, other: Option<&wgpu::Buffer>) -> Result<Bound, Error> {
        let kept = self.given.iter().filter(|g| g.0 != operand);
        let buffers = kept.fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
        self.plan.bind(other.into_iter().fold(buffers, |all, b| all.with(operand, b)))
    }

    fn right(&self) -> Bound {
        self.with(Operand::X, None).expect("right buffers")
    }

    /// One submit, against the CPU with these extras.
    fn check(&self, program: &Program, bound: &Bound, of: impl Fn(Inputs<'_>) -> Reference) {
        program.submit(|encoder| bound.encode_in(encoder));
        let [q, k, v] = &self.inputs;
        let reference = of(Inputs::new(q, k, v));
        let o = &self.given.iter().find(|g| g.0 == Operand::O).expect("given").1;
        let error = max_error(&program.read(o), &reference.want.o);
        assert!(error <= reference.tolerance(Operand::O), "off by {error}");
    }
}

fn choices() -> [Choice; 2] {
    [tile(32, 32), Choice::method(Method::Staged)]
}

#[test]
fn masks_and_tables_that_cannot_be_bound() {
    let program = Program::shared();
    for choice in choices() {
        let call = Call::new(program, lengths(), choice, &LENS);
        let bytes = |operand| call.problem.bytes(operand);
        assert_eq!([Operand::Mask, Operand::Tables].map(bytes), [8, 16]);
        for operand in [Operand::Mask, Operand::Tables] {
            let refuse = |buffer: Option<&wgpu::Buffer>, want: Error| {
                let error = call.with(operand, buffer).expect_err("a wrong buffer");
                assert_same(&format!("{operand}, {choice:?}"), &error, &want);
            };
            refuse(None, Error::Missing { operand });
            for short in [bytes(operand) - 1, bytes(operand) - 4, 0] {
                let want = Error::Length { operand, need: bytes(operand) / 4, got: short / 4 };
                refuse(Some(&program.empty(short, USAGE)), want);
            }
            let got = USAGE - STORAGE;
            let want = Error::Usage { operand, need: STORAGE, got };
            refuse(Some(&program.empty(bytes(operand), got)), want);
            // What is written shares with nothing.
            let shared = program.empty(1 << 12, USAGE);
            let kept = call.given.iter().filter(|g| g.0 != operand && g.0 != Operand::O);
            let buffers = kept.fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
            let buffers = buffers.with(operand, &shared).with(Operand::O, &shared);
            let need = "a buffer of its own, or Problem::arena for all operands but scratch";
            let want = Error::Overlap { operand: Operand::O, other: operand, need };
            assert_same("shared", &call.plan.bind(buffers).expect_err("shared"), &want);
        }
        // A plan without them.
        let plain = Call::new(program, Problem::new(SHAPE), choice, &[]);
        let spare = program.empty(64, USAGE);
        for operand in [Operand::Mask, Operand::Tables, Operand::KvLens, Operand::Slopes] {
            let error = plain.with(operand, Some(&spare)).expect_err("not wanted");
            assert_same("spare", &error, &Error::Unexpected { operand });
        }
        // A table goes into Tables, never by itself.
        let error = call.with(Operand::KvLens, Some(&spare)).expect_err("within Tables");
        assert_same("by itself", &error, &Error::Unexpected { operand: Operand::KvLens });
        call.check(program, &call.right(), |inputs| {
            let inputs = inputs.mask(&MAY).q_lens(&LENS[..2]).kv_lens(&LENS[2..]);
            Reference::new(&call.problem, inputs).expect("right")
        });
    }
    program.check();
}

/// In an arena the mask lies within, tables beside it.
#[test]
fn tables_beside_an_arena() {
    let program = Program::shared();
    let shape = Shape { batch: 1, ..SHAPE };
    let problem = Problem::new(shape)
        .arena()
        .kv_lens()
        .layout(Operand::O, wgpu_attention::Layout::head_major(2, 9, 4).at(640));
    let plan = program.attention.plan(&problem).expect("a plan");
    let arena = program.empty(4 * problem.elements(Operand::Arena), USAGE);
    let error = plan.bind(Buffers::arena(&arena)).expect_err("no tables");
    assert_same("arena", &error, &Error::Missing { operand: Operand::Tables });
    let tables = program.empty(4, USAGE);
    plan.bind(Buffers::arena(&arena).with(Operand::Tables, &tables)).expect("both");
    // wgpu refuses one buffer read here and written there in a dispatch, once it is recorded.
    let both = plan.bind(Buffers::arena(&arena).with(Operand::Tables, &arena));
    let need = "a buffer of its own, or Problem::arena for all operands but scratch";
    let want = Error::Overlap { operand: Operand::Arena, other: Operand::Tables, need };
    assert_same("arena", &both.expect_err("tables in the arena"), &want);
    program.check();
}

/// `set_lengths` cuts all batch entries short; packed sequences have bounds instead.
#[test]
fn set_lengths() {
    let program = Program::shared();
    for choice in choices() {
        let shape = Shape { batch: 1, ..SHAPE };
        let packed = Problem::new(shape).packed(1).causal().align(Align::BottomRight);
        let call = Call::new(program, packed, choice, &BOUNDS);
        let bound = call.right();
        let want = Error::Unexpected { operand: Operand::QLens };
        for (q_len, kv_len) in [(9, 40), (3, 3), (0, 0), (u32::MAX, u32::MAX)] {
            let error = bound.set_lengths(&program.queue, q_len, kv_len).expect_err("packed");
            assert_same("packed", &error, &want);
        }
        // Nothing was set.
        call.check(program, &bound, |inputs| {
            let inputs = inputs.cu_seqlens(&BOUNDS[..2], &BOUNDS[2..]);
            Reference::new(&call.problem, inputs).expect("right")
        });

        let call = Call::new(program, lengths(), choice, &LENS);
        let bound = call.right();
        let want =
            Error::Size { what: "kv_len", need: "at most its capacity in the shape", got: 41 };
        let error = bound.set_lengths(&program.queue, 9, 41).expect_err("past the capacity");
        assert_same("kv_len", &error, &want);
        for (q_len, kv_len) in [(9, 40), (6, 20), (0, 40), (9, 0), (1, 1), (9, 40)] {
            bound.set_lengths(&program.queue, q_len, kv_len).expect("within");
            let least = |lens: &[u32], most: u32| [lens[0].min(most), lens[1].min(most)];
            call.check(program, &bound, |inputs| {
                let (q, kv) = (least(&LENS[..2], q_len), least(&LENS[2..], kv_len));
                let inputs = inputs.mask(&MAY).q_lens(&q).kv_lens(&kv);
                Reference::new(&call.problem, inputs).expect("right")
            });
        }
    }
    program.check();
}
