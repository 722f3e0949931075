//! A cache on the device and its twin on the CPU, doing the same.

use std::collections::HashSet;

use half::{bf16, f16};
use wgpu_attention::{
    Append, AppendBound, Attention, Bound, Buffers, CacheShape, Element, Error, Group, Inputs,
    KvCache, Operand, Output, Plan, Problem, Rotary, cpu, half,
};

use crate::program::{Program, USAGE};
use crate::support::{max_error, normal};

/// Base of the rotary angles.
const BASE: f64 = 10_000.0;

/// Both, with an append and a cached problem bound once.
pub struct Both<'a> {
    pub program: &'a Program,
    pub cache: KvCache,
    pub twin: cpu::KvCache,
    append: Append,
    pub problem: Problem,
    append_bound: AppendBound,
    pub bound: Bound,
    /// Q, K, V of the next append.
    pub new: [wgpu::Buffer; 3],
    rotated: wgpu::Buffer,
    table: Vec<f32>,
    pub outputs: [wgpu::Buffer; 2],
    element: Element,
    seed: u64,
    /// What the last append turned its queries into.
    pub q: Vec<f32>,
}

/// What a test varies.
#[derive(Clone)]
pub struct Setup {
    pub shape: CacheShape,
    /// Heads of Q.
    pub q_heads: u32,
    /// Most new tokens at a time.
    pub tokens: u32,
    /// Storage of new rows, Q and O.
    pub element: Element,
    pub rotary: Option<Rotary>,
}

impl Setup {
    pub fn new(shape: CacheShape, q_heads: u32, tokens: u32) -> Setup {
        Setup { shape, q_heads, tokens, element: Element::F32, rotary: None }
    }

    pub fn append(&self) -> Append {
        let append = Append::new(self.shape, self.tokens).element(self.element);
        match self.rotary {
            Some(rotary) => append.rotary(rotary).queries(self.q_heads),
            None => append,
        }
    }

    pub fn problem(&self) -> Problem {
        self.shape.problem(self.q_heads, self.tokens).element(Group::Queries, self.element).lse()
    }
}

impl<'a> Both<'a> {
    pub fn new(program: &'a Program, attention: &Attention, setup: &Setup) -> Both<'a> {
        let problem = setup.problem();
        let plan = attention.plan(&problem).expect("a plan");
        Both::with_plan(program, attention, setup, &plan)
    }

    pub fn with_plan(
        program: &'a Program,
        attention: &Attention,
        setup: &Setup,
        plan: &Plan,
    ) -> Both<'a> {
        let (append, problem) = (setup.append(), setup.problem());
        let cache = KvCache::new(attention, setup.shape).expect("a cache");
        let twin = cpu::KvCache::new(setup.shape).expect("a twin");
        let empty = |bytes: u64| program.empty(bytes.max(4), USAGE);
        let new = [Operand::Q, Operand::K, Operand::V].map(|operand| match operand {
            Operand::Q => empty(problem.bytes(operand)),
            _ => empty(append.bytes(operand)),
        });
        let rotated = empty(problem.bytes(Operand::Q));
        let table = setup.rotary.map_or(Vec::new(), |rotary| rotary.table(BASE));
        let rotary = program.buffer(&table);
        let outputs = [Operand::O, Operand::Lse].map(|operand| empty(problem.bytes(operand)));
        let scratch = empty(plan.scratch_bytes());
        let mut given = Buffers::default().with(Operand::K, &new[1]).with(Operand::V, &new[2]);
        if setup.rotary.is_some() {
            given = given.with(Operand::Q, &new[0]).with(Operand::Rotated, &rotated);
            given = given.with(Operand::Rotary, &rotary);
        }
        let append_plan = attention.plan_append(&append).expect("an append");
        let append_bound = append_plan.bind(given.cache(&cache)).expect("a bound append");
        let q = if setup.rotary.is_some() { &rotated } else { &new[0] };
        let buffers = Buffers::cached(q, &cache, &outputs[0]).with(Operand::Lse, &outputs[1]);
        let bound = plan.bind(buffers.with(Operand::Scratch, &scratch)).expect("a bound plan");
        let (seed, q) = (1, Vec::new());
        Both {
            program,
            cache,
            twin,
            append,
            problem,
            append_bound,
            bound,
            new,
            rotated,
            table,
            outputs,
            element: setup.element,
            seed,
            q,
        }
    }

    /// Appends so many random tokens to each sequence, on both, and attends on the device.
    pub fn step(&mut self, counts: &[u32]) -> Result<(), Error> {
        self.cache.extend(&self.program.queue, counts)?;
        let new = self.fresh();
        for (buffer, row) in self.new.iter().zip(&new) {
            self.program.queue.write_buffer(buffer, 0, &packed(row, self.element));
        }
        self.program.submit(|encoder| self.record(encoder));
        self.step_twin(counts, &new);
        Ok(())
    }

    /// Random Q, K, V.
    pub fn fresh(&mut self) -> [Vec<f32>; 3] {
        let rows = [
            self.problem.elements(Operand::Q),
            self.append.elements(Operand::K),
            self.append.elements(Operand::V),
        ];
        rows.map(|n| {
            self.seed += 1;
            rounded(&normal(n as usize, self.seed), self.element)
        })
    }

    /// The append, then attention.
    pub fn record(&self, encoder: &mut wgpu::CommandEncoder) {
        self.append_bound.encode_in(encoder);
        self.bound.encode_in(encoder);
    }

    pub fn step_twin(&mut self, counts: &[u32], new: &[Vec<f32>; 3]) {
        self.q = match self.element {
            Element::F32 => self.append_twin::<f32>(counts, new),
            Element::F16 => self.append_twin::<f16>(counts, new),
            _ => self.append_twin::<bf16>(counts, new),
        };
    }

    /// Both begin an empty sequence with another one's tokens.
    pub fn share(&mut self, from: u32, to: u32, tokens: u32) -> Result<(), Error> {
        self.cache.share(&self.program.queue, from, to, tokens)?;
        self.twin.share(from, to, tokens)
    }

    /// Both forget a sequence's tokens past a length.
    pub fn set_len(&mut self, sequence: u32, len: u32) -> Result<(), Error> {
        self.cache.set_len(&self.program.queue, sequence, len)?;
        self.twin.truncate(sequence, len)
    }

    /// Every page is free or in a table.
    pub fn conserved(&self) {
        let shape = self.cache.shape();
        let pages = shape.paging.map_or(0, |paging| paging.pages);
        let table = |sequence| self.cache.pages(sequence).expect("a sequence");
        let used: HashSet<u32> = (0..shape.sequences).flat_map(table).copied().collect();
        assert_eq!(used.len() as u32 + self.cache.free_pages(), pages, "pages");
    }

    /// What the definition computes over the twin's rows, with these lengths.
    pub fn want(&self, lens: &[u32]) -> Output {
        let plain = self.twin.problem(&self.problem).element(Group::Queries, Element::F32);
        let inputs = Inputs::<f32>::new(&self.q, self.twin.k(), self.twin.v()).kv_lens(lens);
        cpu::attention(&plain, inputs).expect("the definition")
    }

    fn append_twin<T: wgpu_attention::Scalar>(
        &mut self,
        counts: &[u32],
        new: &[Vec<f32>; 3],
    ) -> Vec<f32> {
        let rotary = (!self.table.is_empty()).then_some(self.table.as_slice());
        let [q, k, v] = new
            .each_ref()
            .map(|row| row.iter().map(|&x| T::from_f64(x.into())).collect::<Vec<T>>());
        let q_in = rotary.map(|_| q.as_slice());
        let inputs = cpu::AppendInputs { k: &k, v: &v, q: q_in, rotary };
        let turned = self.twin.append(&self.append, counts, inputs).expect("the twin's append");
        turned.unwrap_or(q).iter().map(|x| x.to_f64() as f32).collect()
    }

    /// The largest error of the last step's output and LSE against the CPU over the twin's rows.
    pub fn errors(&self) -> [f32; 2] {
        self.errors_at(self.twin.lens())
    }

    /// The same with other lengths than the twin has.
    pub fn errors_at(&self, lens: &[u32]) -> [f32; 2] {
        let want = self.want(lens);
        let o = self.output();
        let lse = self.program.read(&self.outputs[1]);
        [
            max_error(&o[..want.o.len()], &want.o),
            max_error(&lse[..], want.lse.as_deref().expect("wanted")),
        ]
    }

    /// The device's output of the last step, f32.
    pub fn output(&self) -> Vec<f32> {
        unpacked(&self.program.read(&self.outputs[0]), self.element)
    }

    /// What the rotated queries are off by.
    pub fn rotated_error(&self) -> f32 {
        let rotated = unpacked(&self.program.read(&self.rotated), self.element);
        max_error(&rotated[..self.q.len()], &self.q)
    }

    /// The device's rows of K and V, read back.
    pub fn rows(&self, attention: &Attention) -> [Vec<f32>; 2] {
        let shape = self.cache.shape();
        let unpack = attention.plan_unpack(shape).expect("a plan");
        let buffers =
            [self.twin.k(), self.twin.v()].map(|x| self.program.empty(4 * x.len() as u64, USAGE));
        let given = Buffers::default().with(Operand::K, &buffers[0]).with(Operand::V, &buffers[1]);
        let bound = unpack.bind(given.cache(&self.cache)).expect("bound");
        self.program.submit(|encoder| bound.encode_in(encoder));
        buffers.map(|buffer| self.program.read(&buffer))
    }

    /// The largest error of the rows, and the lengths as the device has them.
    pub fn rows_error(&self, attention: &Attention) -> (f32, Vec<u32>) {
        let [k, v] = self.rows(attention);
        let error = max_error(&k, self.twin.k()).max(max_error(&v, self.twin.v()));
        let words = self.program.read(self.cache.words());
        let sequences = self.cache.shape().sequences as usize;
        (error, words[..sequences].iter().map(|x| x.to_bits()).collect())
    }
}

fn rounded(row: &[f32], element: Element) -> Vec<f32> {
    let each = |keep: fn(f32) -> f32| row.iter().copied().map(keep).collect();
    match element {
        Element::F16 => each(|x| f16::from_f32(x).into()),
        Element::Bf16 => each(|x| bf16::from_f32(x).into()),
        _ => row.to_vec(),
    }
}

fn packed(row: &[f32], element: Element) -> Vec<u8> {
    let bits = |bits: fn(f32) -> u16| {
        let mut halves: Vec<u16> = row.iter().copied().map(bits).collect();
        halves.resize(halves.len().next_multiple_of(2), 0);
        bytemuck::cast_slice(&halves).to_vec()
    };
    match element {
        Element::F16 => bits(|x| f16::from_f32(x).to_bits()),
        Element::Bf16 => bits(|x| bf16::from_f32(x).to_bits()),
        _ => bytemuck::cast_slice(row).to_vec(),
    }
}

fn unpacked(words: &[f32], element: Element) -> Vec<f32> {
    let halves = || bytemuck::cast_slice::<f32, u16>(words).iter();
    match element {
        Element::F16 => halves().map(|&bits| f16::from_bits(bits).into()).collect(),
        Element::Bf16 => halves().map(|&bits| bf16::from_bits(bits).into()).collect(),
        _ => words.to_vec(),
    }
}
