//! A plan whose operands lie in one buffer with sentinels between them, and a program's own kernels
//! that write into its tables.

use wgpu_attention::{
    Align, Attention, Bound, Buffers, Choice, Inputs, Layout, Operand, Problem, Shape,
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
pub struct Own {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    tokens: wgpu::Buffer,
}

impl Own {
    pub fn new(
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
    pub fn fill(&self, program: &Program, counts: &[u32]) {
        let row = |&n: &u32| (0..CAPACITY).map(move |at| u32::from(at < n));
        self.write(program, &counts.iter().flat_map(row).collect::<Vec<_>>());
    }

    pub fn write(&self, program: &Program, words: &[u32]) {
        program.queue.write_buffer(&self.tokens, 0, bytemuck::cast_slice(words));
    }

    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
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
pub fn problems() -> [(&'static str, Problem, [Operand; 2]); 2] {
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
pub struct Call {
    pub problem: Problem,
    /// Where each operand lies in the arena.
    homes: Vec<(Operand, std::ops::Range<usize>)>,
    inputs: [Vec<f32>; 3],
    arena: wgpu::Buffer,
    scratch: wgpu::Buffer,
    scratch_words: usize,
    pub tables: wgpu::Buffer,
    bound: Bound,
}

impl Call {
    pub fn new(
        program: &Program,
        attention: &Attention,
        problem: &Problem,
        choice: Choice,
    ) -> Call {
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
    pub fn submit(&self, program: &Program, before: &[&Own], name: &str) -> [Vec<f32>; 2] {
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
    pub fn check(&self, [o, lse]: [Vec<f32>; 2], tables: &[Vec<u32>; 2], name: &str) {
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
