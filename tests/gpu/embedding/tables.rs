//! Lengths and bounds of sequences that a program's own kernel makes, in the submit that attends
//! with them. Whatever it writes, attention stays within its operands: here they lie in one buffer
//! with sentinels between them, where a stray write would be seen.

use wgpu_attention::{
    Align, Attention, Bound, Buffers, Choice, Inputs, Layout, LoopLimit, Method, Operand, Options,
    Problem, Shape, Tile,
};

use crate::program::{Program, Reference, USAGE};
use crate::support::{max_error, normal};

const SENTINEL: u32 = 0x7fc5_a5a5;
/// Words between two operands.
const GAP: u32 = 300;
/// In the order in which they lie in the arena.
const HOMES: [Operand; 5] = [Operand::Q, Operand::O, Operand::Lse, Operand::K, Operand::V];

/// The program's own kernels. A token of 0 is padding: `lengths` counts the others of each row of
/// CAPACITY tokens, `bounds` adds the counts up, `copy` writes what it is given.
const OWN: &str = "
override FIRST: u32;
override ENTRIES: u32;
override CAPACITY: u32;

@group(0) @binding(0) var<storage, read> tokens: array<u32>;
@group(0) @binding(1) var<storage, read_write> tables: array<u32>;

fn count(row: u32) -> u32 {
    var n = 0u;
    for (var at = row * CAPACITY; at < (row + 1u) * CAPACITY; at++) {
        n += select(0u, 1u, tokens[at] != 0u);
    }
    return n;
}

@compute @workgroup_size(1)
fn lengths() {
    for (var row = 0u; row < ENTRIES; row++) {
        tables[FIRST + row] = count(row);
    }
}

@compute @workgroup_size(1)
fn bounds() {
    tables[FIRST] = 0u;
    for (var row = 0u; row + 1u < ENTRIES; row++) {
        tables[FIRST + row + 1u] = tables[FIRST + row] + count(row);
    }
}

@compute @workgroup_size(1)
fn copy() {
    for (var at = 0u; at < ENTRIES; at++) {
        tables[FIRST + at] = tokens[at];
    }
}
";

/// One of them, for one table.
struct Own {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    tokens: wgpu::Buffer,
}

impl Own {
    fn new(
        program: &Program,
        entry: &str,
        table: std::ops::Range<u64>,
        tables: &wgpu::Buffer,
    ) -> Own {
        let module = program.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(OWN.into()),
        });
        let entries = table.end - table.start;
        let constants = [
            ("FIRST", table.start as f64),
            ("ENTRIES", entries as f64),
            ("CAPACITY", f64::from(CAPACITY)),
        ];
        let compilation_options =
            wgpu::PipelineCompilationOptions { constants: &constants, ..Default::default() };
        let pipeline = program.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some(entry),
            compilation_options,
            cache: None,
        });
        let tokens = program.empty(4 * entries * u64::from(CAPACITY), USAGE);
        let bind_group = program.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: tokens.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: tables.as_entire_binding() },
            ],
        });
        Own { pipeline, bind_group, tokens }
    }

    /// So many tokens a row, the rest padding.
    fn fill(&self, program: &Program, counts: &[u32]) {
        let row = |&n: &u32| (0..CAPACITY).map(move |at| u32::from(at < n));
        self.write(program, &counts.iter().flat_map(row).collect::<Vec<_>>());
    }

    fn write(&self, program: &Program, words: &[u32]) {
        program.queue.write_buffer(&self.tokens, 0, bytemuck::cast_slice(words));
    }

    fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bind_group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    }
}

/// The longest row of tokens.
const CAPACITY: u32 = 150;
const LENGTHS: Shape =
    Shape { q_len: 40, ..Shape::self_attention(3, 4, CAPACITY, 8) }.kv_heads(2).value_dim(6);
const PACKED: Shape = Shape { batch: 1, q_len: 90, ..LENGTHS };
const SEQUENCES: u32 = 3;

/// Lengths with slopes and sinks behind them, and packed sequences.
fn problems() -> [(&'static str, Problem, [Operand; 2]); 2] {
    let causal = |shape| Problem::new(shape).causal().align(Align::BottomRight).lse();
    let lengths = causal(LENGTHS).q_lens().kv_lens().alibi().sinks();
    let packed = causal(PACKED).packed(SEQUENCES).sinks();
    [
        ("lengths", lengths, [Operand::QLens, Operand::KvLens]),
        ("packed", packed, [Operand::CuSeqlensQ, Operand::CuSeqlensKv]),
    ]
}

/// The same with all operands in one buffer, apart.
fn in_arena(problem: &Problem) -> Problem {
    let s = problem.shape();
    let mut first = GAP;
    HOMES.into_iter().fold(problem.clone().arena(), |arena, operand| {
        let (heads, tokens, inner) = match operand {
            Operand::Q => (s.q_heads, s.q_len, s.head_dim),
            Operand::K => (s.kv_heads, s.kv_len, s.head_dim),
            Operand::V => (s.kv_heads, s.kv_len, s.value_dim),
            Operand::O => (s.q_heads, s.q_len, s.value_dim),
            _ => (s.q_heads, s.q_len, 1),
        };
        let layout = Layout::head_major(heads, tokens, inner).at(first);
        first += s.batch * heads * tokens * inner + GAP;
        arena.layout(operand, layout)
    })
}

const SLOPES: [f32; 4] = [0.5, 0.25, 0.0, -0.125];
const SINKS: [f32; 4] = [0.0, 2.0, -3.0, f32::NEG_INFINITY];

/// One plan on its buffers.
struct Call {
    problem: Problem,
    /// Where each operand lies in the arena.
    homes: Vec<(Operand, std::ops::Range<usize>)>,
    inputs: [Vec<f32>; 3],
    arena: wgpu::Buffer,
    scratch: wgpu::Buffer,
    scratch_words: usize,
    tables: wgpu::Buffer,
    bound: Bound,
}

impl Call {
    fn new(program: &Program, attention: &Attention, problem: &Problem, choice: Choice) -> Call {
        let arena = in_arena(problem);
        let mut first = GAP as usize;
        let home = |operand: Operand| {
            let start = first;
            first += problem.elements(operand) as usize + GAP as usize;
            (operand, start..start + problem.elements(operand) as usize)
        };
        let homes: Vec<_> = HOMES.into_iter().map(home).collect();
        assert_eq!(arena.elements(Operand::Arena), (first - GAP as usize) as u64);
        let inputs = [Operand::Q, Operand::K, Operand::V];
        let inputs = inputs.map(|o| normal(problem.elements(o) as usize, 7 + o as u64));
        let plan = attention.plan_with(&arena, choice).expect("a plan");
        let is_split = plan.describe().split_keys.is_some();
        assert_eq!(is_split, !std::ptr::eq(attention, &program.attention));
        let scratch_words = plan.scratch_bytes() as usize / 4;
        let scratch = program.buffer(&vec![f32::from_bits(SENTINEL); scratch_words + 64]);
        let tables = program.empty(4 * problem.elements(Operand::Tables), USAGE);
        for (operand, values) in [(Operand::Slopes, SLOPES), (Operand::Sinks, SINKS)] {
            if let Some(table) = problem.table(operand) {
                program.queue.write_buffer(&tables, 4 * table.start, bytemuck::bytes_of(&values));
            }
        }
        let buffer = program.empty(4 * first as u64, USAGE);
        let buffers = Buffers::arena(&buffer).with(Operand::Tables, &tables);
        let bound = plan.bind(buffers.with(Operand::Scratch, &scratch)).expect("bound");
        let problem = problem.clone();
        Call { problem, homes, inputs, arena: buffer, scratch, scratch_words, tables, bound }
    }

    /// Inputs, zeros where results go, sentinels everywhere else.
    fn fresh(&self) -> Vec<f32> {
        let mut words = vec![f32::from_bits(SENTINEL); self.arena.size() as usize / 4];
        for (operand, at) in &self.homes {
            match [Operand::Q, Operand::K, Operand::V].iter().position(|o| o == operand) {
                Some(input) => words[at.clone()].copy_from_slice(&self.inputs[input]),
                None => words[at.clone()].fill(0.0),
            }
        }
        words
    }

    /// One submit: these kernels, then attention. O and LSE, once nothing else is found changed.
    fn submit(&self, program: &Program, before: &[&Own], name: &str) -> [Vec<f32>; 2] {
        let fresh = self.fresh();
        program.queue.write_buffer(&self.arena, 0, bytemuck::cast_slice(&fresh));
        program.submit(|encoder| {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            before.iter().for_each(|own| own.record(&mut pass));
            self.bound.encode(&mut pass);
        });
        let words = program.read(&self.arena);
        let written = [Operand::O, Operand::Lse].map(|operand| {
            let home = self.homes.iter().find(|home| home.0 == operand);
            home.expect("a home").1.clone()
        });
        for (at, (got, want)) in words.iter().zip(&fresh).enumerate() {
            let is_output = written.iter().any(|home| home.contains(&at));
            assert!(is_output || got.to_bits() == want.to_bits(), "{name}: word {at} is {got}");
        }
        let spare = &program.read(&self.scratch)[self.scratch_words..];
        assert!(spare.iter().all(|x| x.to_bits() == SENTINEL), "{name}: past scratch");
        written.map(|home| words[home].to_vec())
    }

    /// O and LSE against the CPU's with these tables.
    fn check(&self, [o, lse]: [Vec<f32>; 2], tables: &[Vec<u32>; 2], name: &str) {
        let [q, k, v] = &self.inputs;
        let [of_q, of_kv] = tables;
        let inputs = Inputs::new(q, k, v).sinks(&SINKS);
        let inputs = match self.problem.table(Operand::QLens) {
            Some(_) => inputs.q_lens(of_q).kv_lens(of_kv).slopes(&SLOPES),
            None => inputs.cu_seqlens(of_q, of_kv),
        };
        let reference = Reference::new(&self.problem, inputs).expect(name);
        for (operand, got) in [(Operand::O, o), (Operand::Lse, lse)] {
            let error = max_error(&got, reference.part(operand).expect("wanted"));
            assert!(error <= reference.tolerance(operand), "{name}: {operand} is off by {error}");
        }
    }
}

/// Few enough iterations to split keys after 32 or 64, a search for sequences included.
fn split(program: &Program) -> Attention {
    Attention::with(&program.device, Options::default().loop_limit(LoopLimit::Iterations(350)))
}

fn each_kernel(work: impl Fn(&Program, &Call, [Operand; 2], &str)) {
    let program = Program::shared();
    let split = split(program);
    let choices = [Choice::tile(Tile { queries: 32, keys: 32 }), Choice::method(Method::Staged)];
    for (name, problem, tables) in problems() {
        for attention in [&program.attention, &split] {
            for choice in choices {
                let is_split = std::ptr::eq(attention, &split);
                let name = format!("{name}, {:?}, split: {is_split}", choice.method);
                let call = Call::new(program, attention, &problem, choice);
                work(program, &call, tables, &name);
            }
        }
    }
    program.check();
}

/// Tokens of queries and keys, a batch entry or packed sequence each. The first and the last are
/// the same, so that what lies between is seen to leave nothing behind.
const COUNTS: [[[u32; 3]; 2]; 7] = [
    [[20, 30, 40], [50, 70, 30]],
    [[0, 0, 0], [0, 0, 0]],
    [[40, 0, 1], [1, 0, 149]],
    [[0, 33, 32], [32, 33, 85]],
    [[1, 40, 1], [0, 0, 150]],
    [[30, 30, 30], [31, 64, 5]],
    [[20, 30, 40], [50, 70, 30]],
];

/// Where sequences of so many tokens begin, and the last one ends.
fn bounds(counts: [u32; 3]) -> Vec<u32> {
    counts.iter().fold(vec![0], |mut bounds, n| {
        bounds.push(bounds[bounds.len() - 1] + n);
        bounds
    })
}

#[test]
fn a_kernel_of_the_same_submit_makes_them() {
    each_kernel(|program, call, tables, name| {
        let packed = call.problem.table(Operand::QLens).is_none();
        let entry = if packed { "bounds" } else { "lengths" };
        let own = tables.map(|operand| {
            let table = call.problem.table(operand).expect("a table");
            Own::new(program, entry, table, &call.tables)
        });
        for counts in COUNTS {
            let name = format!("{name}, {counts:?}");
            own.iter().zip(&counts).for_each(|(own, counts)| own.fill(program, counts));
            let got = call.submit(program, &[&own[0], &own[1]], &name);
            let tables = counts.map(|c| if packed { bounds(c) } else { c.to_vec() });
            call.check(got, &tables, &name);
        }
    });
}

/// The same Bound again and again, without a kernel: the queue writes what the next submit reads.
#[test]
fn rewritten_between_submits() {
    each_kernel(|program, call, tables, name| {
        let packed = call.problem.table(Operand::QLens).is_none();
        let mut first = None;
        for counts in COUNTS {
            let name = format!("{name}, {counts:?}");
            let words = counts.map(|c| if packed { bounds(c) } else { c.to_vec() });
            for (operand, words) in tables.into_iter().zip(&words) {
                let at = 4 * call.problem.table(operand).expect("a table").start;
                program.queue.write_buffer(&call.tables, at, bytemuck::cast_slice(words));
            }
            let got = call.submit(program, &[], &name);
            call.check(got.clone(), &words, &name);
            first.get_or_insert(got.clone());
            let again = counts == COUNTS[0];
            let bits = |parts: &[Vec<f32>; 2]| {
                parts.concat().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            assert!(!again || first.as_ref().map(bits) == Some(bits(&got)), "{name}: other bits");
        }
    });
}

const M: u32 = u32::MAX;

/// Tables that no one should write, and what they amount to, where that is said: lengths past the
/// capacity are the capacity, and so are bounds; the first query bound is 0.
type Hostile = ([Vec<u32>; 2], Option<[Vec<u32>; 2]>);

fn hostile(packed: bool) -> Vec<Hostile> {
    if !packed {
        let of = |q: [u32; 3], kv: [u32; 3]| [q.to_vec(), kv.to_vec()];
        let full = of([40; 3], [150; 3]);
        return vec![
            (of([M; 3], [M; 3]), Some(full.clone())),
            (of([41; 3], [151; 3]), Some(full.clone())),
            (of([1 << 31; 3], [1 << 30; 3]), Some(full)),
            (of([M, 0, 7], [5, M, M - 1]), Some(of([40, 0, 7], [5, 150, 150]))),
        ];
    }
    let of = |q: [u32; 4], kv: [u32; 4]| [q.to_vec(), kv.to_vec()];
    vec![
        // All past the end.
        (of([M; 4], [M; 4]), Some(of([0, 90, 90, 90], [0; 4]))),
        (of([0, M, M, M], [0, M, M, M]), Some(of([0, 90, 90, 90], [0, 150, 150, 150]))),
        (of([0, 30, 91, 1000], [0, 1, 151, M]), Some(of([0, 30, 90, 90], [0, 1, 150, 150]))),
        // Starting above 0.
        (of([50, 60, 70, 90], [0, 10, 20, 30]), Some(of([0, 60, 70, 90], [0, 10, 20, 30]))),
        (of([M, 60, 70, 90], [0, 10, 20, 30]), Some(of([0, 60, 70, 90], [0, 10, 20, 30]))),
        (of([0, 30, 60, 90], [100, 120, 140, 150]), None),
        // Falling.
        (of([0, 60, 30, 90], [0, 100, 50, 150]), None),
        (of([90, 60, 30, 0], [150, 100, 50, 0]), None),
        (of([0, M, 0, M], [0, M, 0, M]), None),
        (of([M, 0, M, 0], [M, 0, M, 0]), None),
        (of([0, 89, 1, 88], [149, 0, M, 1]), None),
        // A sequence of all keys without queries, and the reverse.
        (of([0, 0, 0, 0], [0, M, M, M]), Some(of([0; 4], [0, 150, 150, 150]))),
        (of([0, M, M, M], [0; 4]), Some(of([0, 90, 90, 90], [0; 4]))),
    ]
}

#[test]
fn hostile_values_are_clamped() {
    each_kernel(|program, call, tables, name| {
        let packed = call.problem.table(Operand::QLens).is_none();
        let own = tables.map(|operand| {
            let table = call.problem.table(operand).expect("a table");
            Own::new(program, "copy", table, &call.tables)
        });
        let both = [&own[0], &own[1]];
        let right = COUNTS[0].map(|c| if packed { bounds(c) } else { c.to_vec() });
        for (values, want) in hostile(packed) {
            let name = format!("{name}, {values:?}");
            own.iter().zip(&values).for_each(|(own, words)| own.write(program, words));
            let got = call.submit(program, &both, &name);
            match want {
                Some(want) => call.check(got, &want, &name),
                None => {
                    let [o, lse] = got;
                    assert!(o.iter().all(|x| x.is_finite()), "{name}: {o:?}");
                    assert!(lse.iter().all(|&x| x < f32::INFINITY), "{name}: {lse:?}");
                }
            }
            own.iter().zip(&right).for_each(|(own, words)| own.write(program, words));
            let got = call.submit(program, &both, &name);
            call.check(got, &right, &format!("after {name}"));
        }
    });
}
