//! Attention over parts of the keys, merged, equals attention over all of them: one encoder, the
//! attention calls writing straight into the stacked buffers.

use wgpu_attention::half::{bf16, f16};
use wgpu_attention::{
    Align, Buffers, Element, Group, Inputs, Layout, Merge, Operand, Problem, Scalar, Shape, cpu,
};

use super::{Memory, Tensors, off};
use crate::program::Program;
use crate::support::{Data, max_error, normal};
use wgpu_attention_support::data::max_error_of;

/// f32 within 1e-5, the contract's word for ordinary values.
const TOLERANCE: f32 = 1e-5;

/// q, k, v as bytes in buffers, and where the results go.
struct Call<'a> {
    program: &'a Program,
    q: wgpu::Buffer,
    k: wgpu::Buffer,
    v: wgpu::Buffer,
    parts: wgpu::Buffer,
    parts_lse: wgpu::Buffer,
    o: wgpu::Buffer,
    lse: wgpu::Buffer,
}

impl<'a> Call<'a> {
    /// For `merge`, whose parts are calls on these slices.
    fn new<T: Scalar>(program: &'a Program, merge: &Merge, [q, k, v]: [&[T]; 3]) -> Call<'a> {
        let filled = |x: &[T]| {
            let mut words = vec![0f32; (size_of_val(x)).div_ceil(4)];
            bytemuck::cast_slice_mut(&mut words)[..x.len()].copy_from_slice(x);
            program.buffer(&words)
        };
        // NaN, so that nothing is taken for a result that is none.
        let empty = |operand| program.buffer(&vec![f32::NAN; merge.bytes(operand) as usize / 4]);
        Call {
            program,
            q: filled(q),
            k: filled(k),
            v: filled(v),
            parts: empty(Operand::Parts),
            parts_lse: empty(Operand::PartsLse),
            o: empty(Operand::O),
            lse: empty(Operand::Lse),
        }
    }

    /// Records attention whose O and LSE are a part.
    fn attend(&self, encoder: &mut wgpu::CommandEncoder, problem: &Problem) {
        let plan = self.program.attention.plan(problem).expect("a plan");
        let buffers = Buffers::new(&self.q, &self.k, &self.v, &self.parts);
        let bound = plan.bind(buffers.with(Operand::Lse, &self.parts_lse)).expect("buffers");
        bound.encode_in(encoder);
    }

    fn merge(&self, encoder: &mut wgpu::CommandEncoder, merge: &Merge, sinks: Option<&[f32]>) {
        let tables = sinks.map(|sinks| self.program.buffer(sinks));
        let mut buffers = Buffers::default()
            .with(Operand::Parts, &self.parts)
            .with(Operand::PartsLse, &self.parts_lse);
        if merge.clone().in_place() != *merge {
            buffers = buffers.with(Operand::O, &self.o).with(Operand::Lse, &self.lse);
        }
        if let Some(tables) = &tables {
            buffers = buffers.with(Operand::Tables, tables);
        }
        let plan = self.program.attention.plan_merge(merge).expect("a plan");
        plan.bind(buffers).expect("buffers").encode_in(encoder);
    }

    fn result<T: Scalar>(&self, merge: &Merge, n: usize) -> (Vec<T>, Vec<f32>) {
        let [o, lse] = match merge.clone().in_place() == *merge {
            true => [&self.parts, &self.parts_lse],
            false => [&self.o, &self.lse],
        };
        let (o, mut lse) = (self.program.read(o), self.program.read(lse));
        lse.truncate(n / merge.shape().value_dim as usize);
        (bytemuck::cast_slice(&o)[..n].to_vec(), lse)
    }
}

const WHOLE: Shape =
    Shape { batch: 2, q_heads: 4, kv_heads: 2, q_len: 9, kv_len: 60, head_dim: 12, value_dim: 8 };

/// The call over keys first .. end of `whole`, as part `part`.
fn part(whole: &Problem, part: u32, [first, end]: [u32; 2]) -> Problem {
    let shape = whole.shape();
    let rows = shape.batch * shape.q_heads * shape.q_len;
    let keys = |dim| Layout::head_major(shape.kv_heads, shape.kv_len, dim).at(first * dim);
    let out = |dim| Layout::head_major(shape.q_heads, shape.q_len, dim).at(part * rows * dim);
    let problem = Problem::new(shape.kv_len(end - first)).lse();
    let problem = problem.layout(Operand::K, keys(shape.head_dim));
    let problem = problem.layout(Operand::V, keys(shape.value_dim));
    problem.layout(Operand::O, out(shape.value_dim)).layout(Operand::Lse, out(1))
}

/// Bounds of n parts of the keys, some of them empty.
fn bounds(n: usize, seed: u64) -> Vec<u32> {
    let draw = |x: f32| ((20.0 * x + 30.0).clamp(0.0, 60.0) / 12.0).round() as u32 * 12;
    let mut all: Vec<u32> = normal(n - 1, seed).into_iter().map(draw).chain([0, 60]).collect();
    all.sort_unstable();
    all
}

fn splits<T: Scalar>(in_place: bool) -> (usize, usize) {
    let program = Program::shared();
    let (mut parts, mut empty) = (0, 0);
    for n in [1, 2, 3, 7] {
        for seed in 0..4 {
            let problem = Problem::new(WHOLE).lse();
            let sinks = (seed % 2 == 1).then(|| normal(4, 77));
            let problem = if sinks.is_some() { problem.sinks() } else { problem };
            let data = [Operand::Q, Operand::K, Operand::V].map(|operand| {
                let x = normal(problem.elements(operand) as usize, 8 * seed + operand as u64);
                x.iter().map(|&x| T::from_f64(x.into())).collect::<Vec<T>>()
            });
            let [q, k, v] = [0, 1, 2].map(|at| &data[at][..]);
            let mut inputs = Inputs::new(q, k, v);
            inputs.extras.sinks = sinks.as_deref();
            let want = cpu::attention(&problem, inputs).expect("cpu");

            let merge = Merge::new(WHOLE, n as u32).element(T::ELEMENT);
            let merge = if sinks.is_some() { merge.sinks() } else { merge };
            let merge = if in_place { merge.in_place() } else { merge };
            let call = Call::new(program, &merge, [q, k, v]);
            let bounds = bounds(n, 100 * seed + n as u64);
            program.submit(|encoder| {
                for (at, keys) in (0..).zip(bounds.windows(2)) {
                    let part = part(&problem, at, [keys[0], keys[1]]);
                    let part = part.element(Group::Queries, T::ELEMENT);
                    call.attend(encoder, &part.element(Group::Keys, T::ELEMENT));
                    parts += 1;
                    empty += usize::from(keys[0] == keys[1]);
                }
                call.merge(encoder, &merge, sinks.as_deref());
            });
            let (o, lse) = call.result::<T>(&merge, want.o.len());
            // Each part's O was rounded once, and their mix once more.
            let rounding = match T::ELEMENT {
                Element::F16 => 2f32.powi(-10),
                Element::Bf16 => 2f32.powi(-7),
                _ => 0.0,
            };
            let wide = |x: &[T]| x.iter().map(|x| x.to_f64() as f32).collect::<Vec<_>>();
            let allowed = |x: f32| TOLERANCE + 2.0 * rounding * x.abs().max(1.0);
            let error = max_error_of(&wide(&o), &wide(&want.o), allowed);
            assert!(error <= 1.0, "{bounds:?}: {error} x the tolerance");
            let error = max_error(&lse, want.lse.as_ref().expect("wanted"));
            assert!(error <= TOLERANCE, "{bounds:?}: LSE off by {error:e}");
        }
    }
    (parts, empty)
}

#[test]
fn split_keys_merge_to_the_whole() {
    for in_place in [false, true] {
        for (parts, empty) in
            [splits::<f32>(in_place), splits::<f16>(in_place), splits::<bf16>(in_place)]
        {
            println!("{parts} parts, {empty} of them empty");
            assert!(empty > 3);
        }
    }
}

/// A causal call whose keys come in chunks, each merged into what there is. The first merge, of no
/// parts, makes O and LSE empty; the last one adds the sinks.
#[test]
fn chunks_of_keys_accumulate() {
    let program = Program::shared();
    let shape = Shape { q_len: 40, ..WHOLE };
    let past = 20;
    let problem = Problem::new(shape).causal().align(Align::Shift(past)).lse().sinks();
    let sinks = normal(4, 5);
    let mut data = Data::new(&problem, 3);
    data.given.sinks = Some(sinks.clone());
    let want = cpu::attention(&problem, data.inputs()).expect("cpu");
    for chunk in [7, 16, 60] {
        let step = Merge::new(shape, 1).accumulate();
        let call = Call::new(program, &step, [&data.q, &data.k, &data.v]);
        program.submit(|encoder| {
            call.merge(encoder, &Merge::new(shape, 0), None);
            for first in (0..60).step_by(chunk) {
                let end = (first + chunk as u32).min(60);
                let part = part(&problem, 0, [first, end]).causal();
                call.attend(encoder, &part.align(Align::Shift(past - first as i32)));
                match end {
                    60 => call.merge(encoder, &step.clone().sinks(), Some(&sinks)),
                    _ => call.merge(encoder, &step, None),
                }
            }
        });
        let (o, lse) = call.result::<f32>(&step, want.o.len());
        let error = max_error(&o, &want.o).max(max_error(&lse, want.lse.as_ref().expect("wanted")));
        assert!(error <= TOLERANCE, "chunks of {chunk}: {error:e}");
    }
}

/// A prefix that all sequences share is attended by all their queries as one sequence, the rest by
/// each itself.
#[test]
fn a_shared_prefix_is_attended_once() {
    let program = Program::shared();
    let (batch, tokens, prefix, suffix) = (3, 4, 25, 11);
    let whole = Shape { batch, q_len: tokens, kv_len: prefix + suffix, ..WHOLE };
    let Shape { q_heads, kv_heads, head_dim, value_dim, .. } = whole;
    // Token-major: [batch, token, ..] is [1, batch * token, ..].
    let rows = |dim| Layout::token_major(q_heads, tokens, dim);
    let keys = |dim| Layout::token_major(kv_heads, suffix, dim).at(prefix * kv_heads * dim);
    let count = batch * q_heads * tokens;
    let out = |dim, part| rows(dim).at(part * count * dim);

    // K and V: the prefix once, then every sequence's own.
    let all = prefix + batch * suffix;
    let data = [batch * tokens * q_heads * head_dim, all * kv_heads * head_dim];
    let [q, k] = [0, 1].map(|at| normal(data[at] as usize, at as u64 + 60));
    let v = normal((all * kv_heads * value_dim) as usize, 62);

    let merge = Merge::new(whole, 2).layout(Operand::Parts, rows(value_dim));
    let merge = merge.layout(Operand::PartsLse, rows(1)).layout(Operand::O, rows(value_dim));
    let call = Call::new(program, &merge, [&q, &k, &v]);
    let of = |shape: Shape, part| {
        let problem = Problem::new(shape).lse().layout(Operand::Q, rows(head_dim));
        problem.layout(Operand::O, out(value_dim, part)).layout(Operand::Lse, out(1, part))
    };
    let together = of(Shape { batch: 1, q_len: batch * tokens, kv_len: prefix, ..whole }, 0);
    let together = together
        .layout(Operand::K, Layout::token_major(kv_heads, prefix, head_dim))
        .layout(Operand::V, Layout::token_major(kv_heads, prefix, value_dim));
    let alone = of(whole.kv_len(suffix), 1);
    let alone = alone.layout(Operand::K, keys(head_dim)).layout(Operand::V, keys(value_dim));
    program.submit(|encoder| {
        call.attend(encoder, &together);
        call.attend(encoder, &alone);
        call.merge(encoder, &merge, None);
    });
    let (o, lse) = call.result::<f32>(&merge, (count * value_dim) as usize);

    // One call each over the prefix and its own keys. LSE comes out head-major.
    let one = Problem::new(Shape { batch: 1, ..whole }).lse();
    let one = one.layout(Operand::Q, rows(head_dim)).layout(Operand::O, rows(value_dim));
    let one = one
        .layout(Operand::K, Layout::token_major(kv_heads, prefix + suffix, head_dim))
        .layout(Operand::V, Layout::token_major(kv_heads, prefix + suffix, value_dim));
    for (at, (o, lse)) in o.chunks(o.len() / 3).zip(lse.chunks(lse.len() / 3)).enumerate() {
        let joined = |x: &[f32], row: u32| {
            let (row, first) = ((kv_heads * row) as usize, prefix as usize + at * suffix as usize);
            [&x[..prefix as usize * row], &x[first * row..(first + suffix as usize) * row]].concat()
        };
        let (k, v) = (joined(&k, head_dim), joined(&v, value_dim));
        let q = q.chunks(q.len() / 3).nth(at).expect("a sequence");
        let want = cpu::attention(&one, Inputs::new(q, &k, &v)).expect("cpu");
        let got = (o.to_vec(), lse.to_vec());
        let error =
            max_error(&got.0, &want.o).max(max_error(&got.1, want.lse.as_ref().expect("wanted")));
        assert!(error <= TOLERANCE, "sequence {at}: {error:e}");
    }
}

/// Recorded twice, a fresh merge gives the same bits; an accumulating one adds twice.
#[test]
fn recorded_twice() {
    let program = Program::shared();
    let (n, merge) = (2 * 4 * 9 * 8, Merge::new(WHOLE, 3));
    for merge in [merge.clone(), merge.accumulate()] {
        let held = merge.clone().accumulate() == merge;
        let mut tensors = Tensors::<f32>::new(&merge, held, 4);
        let memory = Memory::new(program, &merge, &tensors);
        let bound = program.attention.plan_merge(&merge).expect("a plan");
        let bound = bound.bind(memory.given()).expect("buffers");
        let record = |encoder: &mut wgpu::CommandEncoder| {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            bound.encode(&mut pass);
        };
        program.submit(record);
        let once = memory.read::<f32>(program, &merge);
        program.submit(record);
        let twice = memory.read::<f32>(program, &merge);
        assert_eq!(once.0.len(), n);
        if held {
            tensors.held = Some(once);
            let want = cpu::merge(&merge, tensors.inputs()).expect("cpu");
            assert!(off(&twice, &(want.o, want.lse.expect("always"))) <= 1.0);
        } else {
            assert_eq!(once, twice);
        }
    }
}
