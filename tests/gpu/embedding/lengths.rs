//! Lengths that change between submits.

use wgpu_attention::{
    Align, Attention, Band, Bound, Buffers, Choice, Error, Inputs, Layout, Method, Operand,
    Problem, Shape, Tile,
};

use crate::program::{Program, Reference, USAGE};
use crate::support::{max_error, normal};

const CAPACITY: Shape =
    Shape { q_len: 64, ..Shape::self_attention(2, 4, 96, 7) }.kv_heads(2).value_dim(5);

/// Query and key counts, one after the other on one Bound; growing, shrinking, none at all.
const LENGTHS: [(u32, u32); 14] = [
    (64, 96),
    (0, 0),
    (1, 1),
    (64, 0),
    (0, 96),
    (1, 96),
    (33, 57),
    (63, 95),
    (17, 3),
    (64, 64),
    (2, 33),
    (40, 32),
    (64, 1),
    (64, 96),
];

/// A problem of any shape within the capacity.
type Of = fn(Shape) -> Problem;

/// (name, problem), all with the capacity's strides.
fn problems() -> Vec<(&'static str, Of)> {
    fn base(shape: Shape) -> Problem {
        let Shape { q_heads, kv_heads, q_len, kv_len, head_dim, value_dim, .. } = CAPACITY;
        Problem::new(shape)
            .align(Align::BottomRight)
            .lse()
            .layout(Operand::Q, Layout::head_major(q_heads, q_len, head_dim))
            .layout(Operand::K, Layout::head_major(kv_heads, kv_len, head_dim))
            .layout(Operand::V, Layout::head_major(kv_heads, kv_len, value_dim))
            .layout(Operand::O, Layout::head_major(q_heads, q_len, value_dim))
            .layout(Operand::Lse, Layout::head_major(q_heads, q_len, 1))
    }
    fn stored(shape: Shape) -> Problem {
        let Shape { q_heads, q_len, kv_len, .. } = CAPACITY;
        let matrix = Layout::head_major(q_heads, q_len, kv_len);
        let problem = base(shape).scores().weights();
        problem.layout(Operand::Scores, matrix).layout(Operand::Weights, matrix)
    }
    vec![
        ("open", base),
        ("causal", |shape| base(shape).causal()),
        ("band", |shape| base(shape).band(Band { left: Some(20), right: Some(2) })),
        ("stored, causal", |shape| stored(shape).causal()),
    ]
}

/// Elements of an operand with a row start for every (batch, head, token) of the capacity.
struct Rows {
    operand: Operand,
    heads: u32,
    tokens: u32,
    inner: u32,
}

const ROWS: [Rows; 4] = [
    Rows { operand: Operand::O, heads: 4, tokens: 64, inner: 5 },
    Rows { operand: Operand::Lse, heads: 4, tokens: 64, inner: 1 },
    Rows { operand: Operand::Scores, heads: 4, tokens: 64, inner: 96 },
    Rows { operand: Operand::Weights, heads: 4, tokens: 64, inner: 96 },
];

impl Rows {
    /// What must be there after a call of these lengths: `want` within them, and beyond them what
    /// a row or key that does not exist has.
    fn expected(&self, want: &[f32], (q_len, kv_len): (u32, u32)) -> Vec<f32> {
        let nothing = match self.operand {
            Operand::O | Operand::Weights => 0.0,
            _ => f32::NEG_INFINITY,
        };
        let is_matrix = matches!(self.operand, Operand::Scores | Operand::Weights);
        let inner = if is_matrix { kv_len } else { self.inner };
        let rows = CAPACITY.batch * self.heads * self.tokens;
        let at = |row: u32, d: u32| match row % self.tokens < q_len && d < inner {
            true => want[(row * self.inner + d) as usize],
            false => nothing,
        };
        (0..rows)
            .flat_map(|row| (0..self.inner).map(move |d| (row, d)))
            .map(|(r, d)| at(r, d))
            .collect()
    }
}

/// Normal numbers where a token exists, NaN where it does not.
fn tokens(heads: u32, capacity: u32, inner: u32, count: u32, seed: u64) -> Vec<f32> {
    let mut x = normal((CAPACITY.batch * heads * capacity * inner) as usize, seed);
    for (row, x) in x.chunks_mut(inner as usize).enumerate() {
        if row as u32 % capacity >= count {
            x.fill(f32::NAN);
        }
    }
    x
}

struct Memory {
    buffers: Vec<(Operand, wgpu::Buffer)>,
}

impl Memory {
    fn new(program: &Program, problem: &Problem, scratch: u64) -> Memory {
        let wanted = [Operand::Q, Operand::K, Operand::V, Operand::O];
        let outputs = problem.outputs();
        let optional = [
            (outputs.lse, Operand::Lse),
            (outputs.scores, Operand::Scores),
            (outputs.weights, Operand::Weights),
        ];
        let optional = optional.into_iter().filter(|o| o.0).map(|o| o.1);
        let sized = wanted.into_iter().chain(optional);
        let sized = sized.map(|operand| (operand, 4 * problem.elements(operand)));
        let all = sized.chain([(Operand::Scratch, scratch)]);
        Memory { buffers: all.map(|(o, bytes)| (o, program.empty(bytes, USAGE))).collect() }
    }

    fn given(&self) -> Buffers<'_> {
        self.buffers.iter().fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer))
    }

    fn get(&self, operand: Operand) -> &wgpu::Buffer {
        &self.buffers.iter().find(|b| b.0 == operand).expect("given").1
    }
}

/// One submit over the first elements of these inputs, as many as there is room for.
fn submit(program: &Program, bound: &Bound, memory: &Memory, inputs: [&[f32]; 3]) {
    for (operand, x) in [Operand::Q, Operand::K, Operand::V].into_iter().zip(inputs) {
        let buffer = memory.get(operand);
        let bytes = &bytemuck::cast_slice(x)[..buffer.size() as usize];
        program.queue.write_buffer(buffer, 0, bytes);
    }
    program.submit(|encoder| bound.encode_in(encoder));
}

fn follow(program: &Program, attention: &Attention, choice: Choice) -> (u32, u32) {
    let (mut ran, mut skipped) = (0, 0);
    for (name, of) in problems() {
        let problem = of(CAPACITY);
        if choice.method == Some(Method::Flash) && problem.outputs().scores {
            skipped += 1;
            continue;
        }
        let plan = attention.plan_with(&problem, choice).expect(name);
        let is_split = plan.describe().split_keys.is_some();
        assert_eq!(is_split, std::ptr::eq(attention, &program.split), "{name}");
        let memory = Memory::new(program, &problem, plan.scratch_bytes());
        let bound = plan.bind(memory.given()).expect(name);
        for (at, (q_len, kv_len)) in LENGTHS.into_iter().enumerate() {
            let name = format!("{name} {:?}: {q_len} of 64, {kv_len} of 96", choice.method);
            let seed = 3 * at as u64;
            let q = tokens(4, 64, 7, q_len, seed);
            let k = tokens(2, 96, 7, kv_len, seed + 1);
            let v = tokens(2, 96, 5, kv_len, seed + 2);
            // A Bound starts with its capacities.
            if at > 0 {
                bound.set_lengths(&program.queue, q_len, kv_len).expect(&name);
            }
            submit(program, &bound, &memory, [&q, &k, &v]);

            // The same call by a problem of exactly these lengths, in one split.
            let exact = of(Shape { q_len, kv_len, ..CAPACITY });
            let reference = Reference::new(&exact, Inputs::new(&q, &k, &v)).expect(&name);
            let exact_plan = program.attention.plan_with(&exact, choice).expect(&name);
            let exact_memory = Memory::new(program, &exact, exact_plan.scratch_bytes());
            let exact_bound = exact_plan.bind(exact_memory.given()).expect(&name);
            submit(program, &exact_bound, &exact_memory, [&q, &k, &v]);
            for rows in ROWS {
                let Some(want) = reference.part(rows.operand) else { continue };
                let most = reference.tolerance(rows.operand);
                let got = program.read(memory.get(rows.operand));
                let same = program.read(exact_memory.get(rows.operand));
                for (whose, want) in [("the CPU", want), ("an exact plan", &same[..])] {
                    let error = max_error(&got, &rows.expected(want, (q_len, kv_len)));
                    let operand = rows.operand;
                    assert!(error <= most, "{name}: {operand} is off {whose}'s by {error}");
                }
            }
            ran += 1;
        }
    }
    (ran, skipped)
}

/// Every kernel, without and with splits of a few keys.
#[test]
fn lengths_change_between_submits() {
    let program = Program::shared();
    let tile = Choice::tile(Tile { queries: 32, keys: 32 });
    for attention in [&program.attention, &program.split] {
        for choice in [tile, Choice::method(Method::Staged)] {
            let (ran, skipped) = follow(program, attention, choice);
            println!(
                "{ran} problems of {} lengths, {skipped} skipped (stored scores), {:?}",
                LENGTHS.len(),
                choice.method
            );
        }
    }
}

/// Past a capacity, or out of line with a band, is an error, and what was set before stays.
#[test]
fn wrong_lengths_change_nothing() {
    let program = Program::shared();
    let shape = Shape { q_len: 8, ..Shape::self_attention(1, 1, 8, 4) };
    let problem = Problem::new(shape).causal().lse();
    let plan = program.attention.plan(&problem).expect("a plan");
    let memory = Memory::new(program, &problem, plan.scratch_bytes());
    let bound = plan.bind(memory.given()).expect("bound");
    let x = normal(32, 1);
    bound.set_lengths(&program.queue, 5, 5).expect("within the capacities");
    let need = "at most its capacity in the shape";
    for (q_len, kv_len, want) in [
        (9, 5, Error::Size { what: "q_len", need, got: 9 }),
        (5, 9, Error::Size { what: "kv_len", need, got: 9 }),
        (u32::MAX, u32::MAX, Error::Size { what: "q_len", need, got: u32::MAX.into() }),
        (4, 5, Error::Align { q_len: 4, kv_len: 5 }),
    ] {
        assert_eq!(bound.set_lengths(&program.queue, q_len, kv_len), Err(want));
    }
    submit(program, &bound, &memory, [&x, &x, &x]);
    let finite = program.read(memory.get(Operand::Lse)).iter().filter(|x| x.is_finite()).count();
    assert_eq!(finite, 5);
}
