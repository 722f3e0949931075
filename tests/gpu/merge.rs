//! Merges of partial results, against the CPU twin and against attention over all keys.

mod errors;
mod extremes;
mod keys;
mod means;
mod places;

use wgpu_attention::half::{bf16, f16};
use wgpu_attention::{
    Attention, Buffers, Element, Layout, Merge, MergeInputs, Operand, Scalar, Shape, cpu,
};

use crate::program::Program;
use crate::support::normal;
use wgpu_attention_support::data::{max_error_of, rounding};

/// NaN, and in both halves.
const SENTINEL: u32 = 0x7fc5_7fc5;
/// Words after the last one that a buffer must have.
const TAIL: usize = 300;

pub fn shape(batch: u32, heads: u32, tokens: u32, value_dim: u32) -> Shape {
    Shape::self_attention(batch, heads, tokens, 1).value_dim(value_dim)
}

/// Slices of a merge.
pub struct Tensors<T> {
    pub parts: Vec<T>,
    pub parts_lse: Vec<f32>,
    pub held: Option<(Vec<T>, Vec<f32>)>,
    pub sinks: Option<Vec<f32>>,
}

impl<T: Scalar> Tensors<T> {
    /// Random ones. About every fourth LSE is -inf.
    pub fn new(merge: &Merge, accumulates: bool, seed: u64) -> Tensors<T> {
        let of = |operand: Operand| -> Vec<f32> {
            normal(merge.elements(operand) as usize, 40 * seed + operand as u64)
        };
        let o = |operand| of(operand).iter().map(|&x| T::from_f64(x.into())).collect::<Vec<T>>();
        let lse = |operand| -> Vec<f32> {
            let few = |x: f32| if x < -0.67 { f32::NEG_INFINITY } else { 3.0 * x };
            of(operand).into_iter().map(few).collect()
        };
        let sinks = of(Operand::Sinks);
        Tensors {
            parts: o(Operand::Parts),
            parts_lse: lse(Operand::PartsLse),
            held: accumulates.then(|| (o(Operand::O), lse(Operand::Lse))),
            sinks: (!sinks.is_empty()).then_some(sinks),
        }
    }

    /// NaN in O of contiguous parts where they are empty, and row 0 empty in all of them.
    pub fn hollow(mut self, merge: &Merge, row: usize) -> Tensors<T> {
        let shape = merge.shape();
        let rows = (shape.batch * shape.q_heads * shape.q_len) as usize;
        let hollow = |o: &mut [T], lse: &mut [f32]| {
            for (at, lse) in lse.iter_mut().enumerate() {
                *lse = if at % rows == 0 { f32::NEG_INFINITY } else { *lse };
                if *lse == f32::NEG_INFINITY {
                    o[at * row..][..shape.value_dim as usize].fill(T::from_f64(f64::NAN));
                }
            }
        };
        hollow(&mut self.parts, &mut self.parts_lse);
        if let Some((o, lse)) = &mut self.held {
            hollow(o, lse);
        }
        self
    }

    pub fn inputs(&self) -> MergeInputs<'_, T> {
        let mut inputs = MergeInputs::new(&self.parts, &self.parts_lse);
        if let Some((o, lse)) = &self.held {
            inputs = inputs.held(o, lse);
        }
        self.sinks.as_deref().map_or(inputs, |sinks| inputs.sinks(sinks))
    }
}

/// Words that begin with these numbers, and end with sentinels.
fn words<T: Scalar>(x: &[T], bytes: u64) -> Vec<f32> {
    let mut all = vec![f32::from_bits(SENTINEL); bytes as usize / 4 + TAIL];
    bytemuck::cast_slice_mut(&mut all)[..x.len()].copy_from_slice(x);
    all
}

/// The first `n` numbers, nothing after them being changed, 0 for what was not written.
fn numbers<T: Scalar>(words: &[f32], n: usize) -> Vec<T> {
    let untouched = vec![f32::from_bits(SENTINEL); words.len()];
    let [got, before]: [&[T]; 2] = [words, &untouched].map(bytemuck::cast_slice);
    let same = |(x, y): (&T, &T)| bytemuck::bytes_of(x) == bytemuck::bytes_of(y);
    assert!(got[n..].iter().zip(&before[n..]).all(same), "overrun");
    let all = got.iter().zip(before).take(n);
    all.map(|(x, y)| if same((x, y)) { T::zeroed() } else { *x }).collect()
}

/// Buffers of a merge.
pub struct Memory {
    pub buffers: Vec<(Operand, wgpu::Buffer)>,
}

impl Memory {
    pub fn new<T: Scalar>(program: &Program, merge: &Merge, tensors: &Tensors<T>) -> Memory {
        let held = tensors.held.as_ref();
        let (o, lse) = held.map_or((&[][..], &[][..]), |(o, lse)| (&o[..], &lse[..]));
        let filled = |x: &[f32], operand| program.buffer(&words(x, merge.bytes(operand)));
        let typed = |x: &[T], operand| program.buffer(&words(x, merge.bytes(operand)));
        let mut buffers = vec![
            (Operand::Parts, typed(&tensors.parts, Operand::Parts)),
            (Operand::PartsLse, filled(&tensors.parts_lse, Operand::PartsLse)),
        ];
        if merge.clone().in_place() != *merge {
            buffers.push((Operand::O, typed(o, Operand::O)));
            buffers.push((Operand::Lse, filled(lse, Operand::Lse)));
        }
        if let Some(sinks) = &tensors.sinks {
            buffers.push((Operand::Tables, program.buffer(sinks)));
        }
        Memory { buffers }
    }

    pub fn given(&self) -> Buffers<'_> {
        self.buffers.iter().fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer))
    }

    pub fn read<T: Scalar>(&self, program: &Program, merge: &Merge) -> (Vec<T>, Vec<f32>) {
        let home = match merge.clone().in_place() == *merge {
            true => [Operand::Parts, Operand::PartsLse],
            false => [Operand::O, Operand::Lse],
        };
        let [o, lse] = home.map(|operand| {
            let buffer = self.buffers.iter().find(|b| b.0 == operand).expect("given");
            (program.read(&buffer.1), merge.elements(operand) as usize)
        });
        (numbers(&o.0, o.1), numbers(&lse.0, lse.1))
    }
}

/// What the GPU leaves in O and LSE.
pub fn run<T: Scalar>(
    program: &Program,
    attention: &Attention,
    merge: &Merge,
    tensors: &Tensors<T>,
) -> (Vec<T>, Vec<f32>) {
    let plan = attention.plan_merge(merge).unwrap_or_else(|error| panic!("{error}: {merge:?}"));
    let memory = Memory::new(program, merge, tensors);
    let bound = plan.bind(memory.given()).unwrap_or_else(|error| panic!("{error}: {merge:?}"));
    program.submit(|encoder| bound.encode_in(encoder));
    memory.read(program, merge)
}

/// The largest error as a part of what is allowed: a few roundings in f32, two of a 16-bit type.
pub fn off<T: Scalar>(got: &(Vec<T>, Vec<f32>), want: &(Vec<T>, Vec<f32>)) -> f32 {
    let wide = |x: &[T]| x.iter().map(|x| x.to_f64() as f32).collect::<Vec<_>>();
    let [relative, absolute] = rounding(T::ELEMENT);
    let allowed = |x: f32| 2.0 * (x.abs() * relative + absolute) + 4e-6 * x.abs().max(1.0);
    let o = max_error_of(&wide(&got.0), &wide(&want.0), allowed);
    o.max(max_error_of(&got.1, &want.1, |x| 2e-6 * x.abs().max(1.0)))
}

pub fn check<T: Scalar>(program: &Program, merge: &Merge, tensors: &Tensors<T>) {
    let want = cpu::merge(merge, tensors.inputs()).expect("cpu");
    let want = (want.o, want.lse.expect("always"));
    let off = off(&run(program, &program.attention, merge, tensors), &want);
    assert!(off <= 1.0, "{off} x the tolerance: {merge:?}");
}

/// Sizes, numbers of parts, and ways to merge, each with each other: one in so many of them.
fn all<T: Scalar>(step: u32) -> usize {
    let (program, mut cases) = (Program::shared(), 0);
    let shapes = [
        (1u32, 1u32, 1u32, 1u32),
        (2, 3, 5, 8),
        (1, 2, 7, 5),
        (2, 2, 9, 64),
        (1, 1, 3, 300),
        (1, 2, 4, 259),
        (0, 2, 3, 4),
        (1, 2, 0, 4),
    ];
    for (batch, heads, tokens, dim) in shapes {
        for parts in [0u32, 1, 2, 3, 7] {
            for bits in (0..8u32).filter(|bits| (bits + bits / 4 + parts + dim) % step == 0) {
                let on = |bit: u32| bits >> bit & 1 == 1;
                // 16-bit rows begin on a word.
                let row = if T::ELEMENT == Element::F32 { dim } else { dim.next_multiple_of(2) };
                let rows = Layout::head_major(heads, tokens, row);
                let mut merge = Merge::new(shape(batch, heads, tokens, dim), parts);
                merge = merge.element(T::ELEMENT).layout(Operand::Parts, rows);
                merge = merge.part_stride(Operand::Parts, batch * heads * tokens * row);
                merge = match (on(0), on(1)) {
                    (true, true) => continue,
                    (true, _) if parts == 0 => continue,
                    (true, _) => merge.in_place(),
                    (_, held) => {
                        let merge = merge.layout(Operand::O, rows);
                        if held { merge.accumulate() } else { merge }
                    }
                };
                merge = if on(2) { merge.sinks() } else { merge };
                let seed = u64::from(1000 * dim + 10 * parts + bits);
                let tensors = Tensors::<T>::new(&merge, on(1), seed).hollow(&merge, row as usize);
                check(program, &merge, &tensors);
                cases += 1;
            }
        }
    }
    cases
}

#[test]
fn merges_equal_the_cpu() {
    merges([2, 4, 4], 220);
}

/// One in so many by each type.
pub fn merges(steps: [u32; 3], least: usize) {
    let [f32s, f16s, bf16s] = steps;
    let cases = all::<f32>(f32s) + all::<f16>(f16s) + all::<bf16>(bf16s);
    println!("{cases} merges");
    assert!(cases > least);
}

/// One part comes out as it is, bit for bit, and is what was held if there is nothing else.
#[test]
fn one_part_is_exact() {
    let program = Program::shared();
    let merge = Merge::new(shape(2, 3, 5, 7), 1);
    let tensors = Tensors::<f32>::new(&merge, false, 5);
    let tensors = Tensors { parts_lse: normal(30, 6), ..tensors };
    let (parts, parts_lse) = (tensors.parts.clone(), tensors.parts_lse.clone());
    for merge in [merge.clone(), merge.in_place()] {
        assert_eq!(
            run(program, &program.attention, &merge, &tensors),
            (parts.clone(), parts_lse.clone())
        );
    }
    let merge = Merge::new(shape(2, 3, 5, 7), 0).accumulate();
    let held = Tensors { held: Some((parts.clone(), parts_lse.clone())), ..tensors };
    let held = Tensors { parts: Vec::new(), parts_lse: Vec::new(), ..held };
    assert_eq!(run(program, &program.attention, &merge, &held), (parts, parts_lse));
}

/// The order of the parts does not matter beyond rounding.
#[test]
fn any_order_will_do() {
    let (program, rows, dim) = (Program::shared(), 30, 7);
    let merge = Merge::new(shape(2, 3, 5, 7), 5);
    let tensors = Tensors::<f32>::new(&merge, false, 9).hollow(&merge, dim);
    let want = run(program, &program.attention, &merge, &tensors);
    for order in [[4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
        let stacked = |x: &[f32], n: usize| -> Vec<f32> {
            order.iter().flat_map(|&part: &usize| x[part * n..][..n].to_vec()).collect()
        };
        let (parts, parts_lse) =
            (stacked(&tensors.parts, rows * dim), stacked(&tensors.parts_lse, rows));
        let other = Tensors { parts, parts_lse, held: None, sinks: None };
        let off = off(&run(program, &program.attention, &merge, &other), &want);
        assert!(off <= 1.0, "{order:?}: {off} x the tolerance");
    }
}
