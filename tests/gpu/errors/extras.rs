//! What is wrong with masks, lengths, packed sequences, ALiBi, sinks and 16-bit types: one answer
//! from the CPU and the GPU.

use wgpu_attention::half::f16;
use wgpu_attention::{
    Align, BiasLayout, Choice, Element, Error, Group, Inputs, LayerInputs, Layout, MultiHead,
    Operand, Problem, Scalar, Shape, Tile, cpu,
};

use super::{assert_same, good, gpu};
use crate::program::Program;
use crate::support::max_error;

const SHAPE: Shape = Shape { q_len: 5, ..Shape::self_attention(2, 4, 7, 8) };
const SQUARE: Shape = Shape::self_attention(2, 4, 7, 8);
const CAPACITY: &str = "at most the capacity in the shape";
const NEVER: &str = "numbers that never fall";

fn size(what: &'static str, need: &'static str, got: u32) -> Error {
    Error::Size { what, need, got: got.into() }
}

/// Every way in with these slices, which may be of any type.
fn refused<T: Scalar, C: Scalar>(
    name: &str,
    problem: &Problem,
    inputs: Inputs<'_, T, C>,
    want: &Error,
) {
    let (gpu, tile) = (gpu(), Tile { queries: 32, keys: 32 });
    let awaited = gpu.attention_async(problem, inputs, Choice::default());
    let got = [
        cpu::attention(problem, inputs).err(),
        cpu::flash(problem, inputs, tile, Some(64)).err(),
        cpu::row(problem, inputs, [0; 3]).err(),
        gpu.attention(problem, inputs).err(),
        pollster::block_on(awaited).err(),
    ];
    for got in got {
        assert_same(name, &got.unwrap_or_else(|| panic!("{name}: accepted")), want);
    }
}

/// Wrong before there are data, for every type, in a plan and in a layer.
fn wrong(name: &str, problem: &Problem, want: &Error) {
    refused::<f32, f32>(name, problem, Inputs::new(&[], &[], &[]), want);
    refused::<f16, f32>(name, problem, Inputs::new(&[], &[], &[]), want);
    let (planner, layer) = (gpu().planner().clone(), MultiHead::new(6, problem.clone()));
    let empty = LayerInputs::new(&[], [&[]; 4]);
    let layer = layer.context(6);
    let got = [
        ("validate", problem.validate().err()),
        ("plan", planner.plan(problem).err()),
        ("layer", layer.validate().err()),
        ("cpu::multi_head", cpu::multi_head(&layer, empty).err()),
        ("Gpu::multi_head", gpu().multi_head(&layer, empty).err()),
        ("plan_multi_head", planner.plan_multi_head(&layer).err()),
    ];
    for (whose, got) in got {
        let name = format!("{name}, {whose}");
        assert_same(&name, &got.unwrap_or_else(|| panic!("{name}: accepted")), want);
    }
}

#[test]
fn problems() {
    let of = |shape| Problem::new(shape);
    let one = Shape { batch: 1, ..SHAPE };
    let packed = "1, as packed sequences lie one after another";
    let unexpected = |operand| Error::Unexpected { operand };
    let align = |q_len| Error::Align { q_len, kv_len: 7 };
    let far = |shift: i32| Error::Value {
        what: "shift",
        need: "from -2^30 to 2^30 with ALiBi",
        got: shift as f32,
    };
    let shifted = |shift| Problem::new(SHAPE).alibi().align(Align::Shift(shift));
    let key = Error::Stride { operand: Operand::Mask, need: "a key stride of 0 or 1", got: 2 };
    let broadcast = |got: &[u32]| Error::Broadcast {
        operand: Operand::Mask,
        need: [2, 4, 5, 7],
        got: got.to_vec(),
    };
    let strided = BiasLayout { query: u32::MAX - 31, key: 1, ..Default::default() };
    let addressable = "at most 2^32 elements from the first to the last one used";
    let rows = Error::Size { what: "mask", need: addressable, got: 99 * ((1 << 27) - 1) + 1 };
    let many = (1u32 << 30) + 1;
    let mut all = vec![
        ("two batches, packed", of(SHAPE).packed(2), size("batch", packed, 2)),
        ("no batch, packed", of(Shape { batch: 0, ..one }).packed(2), size("batch", packed, 0)),
        ("many sequences", of(one).packed(many), size("sequences", "at most 2^30", many)),
        ("packed, q_lens", of(one).packed(2).q_lens(), unexpected(Operand::QLens)),
        ("packed, kv_lens", of(one).kv_lens().packed(2), unexpected(Operand::KvLens)),
        ("packed, both", of(one).kv_lens().q_lens().packed(2), unexpected(Operand::QLens)),
        ("ALiBi", of(SHAPE).alibi(), align(5)),
        ("ALiBi, kv_lens", of(SQUARE).alibi().kv_lens(), align(7)),
        ("causal, kv_lens", of(SQUARE).causal().kv_lens(), align(7)),
        ("causal, q_lens", of(SQUARE).causal().q_lens(), align(7)),
        ("causal, packed", of(Shape { batch: 1, ..SQUARE }).causal().packed(1), align(7)),
        ("a far shift", shifted((1 << 30) + 1), far((1 << 30) + 1)),
        ("the furthest shift", shifted(i32::MAX), far(i32::MAX)),
        ("the furthest back", shifted(i32::MIN), far(i32::MIN)),
        ("mask key", of(SHAPE).mask(BiasLayout { key: 2, ..Default::default() }), key),
        ("mask of 6 keys", of(SHAPE).mask_shape(&[6]), broadcast(&[6])),
        ("transposed mask", of(SHAPE).mask_shape(&[7, 5]), broadcast(&[7, 5])),
        ("five axes", of(SHAPE).mask_shape(&[1, 1, 1, 1, 7]), broadcast(&[1, 1, 1, 1, 7])),
        ("mask rows", of(Shape { q_len: 100, ..SHAPE }).mask(strided), rows),
    ];
    let layout = Layout::head_major(4, 5, 8);
    for operand in [Operand::Mask, Operand::Tables, Operand::KvLens, Operand::Sinks] {
        all.push(("laid out", of(SHAPE).layout(operand, layout), unexpected(operand)));
    }
    all.iter().for_each(|(name, problem, want)| wrong(name, problem, want));
    println!("{} wrong problems", all.len());
    for right in [
        of(one).packed(0),
        shifted(1 << 30),
        shifted(-(1 << 30)),
        of(SQUARE).alibi().causal(),
        of(SQUARE).kv_lens().q_lens().sinks(),
        of(SHAPE).mask_shape(&[]),
        of(SHAPE).align(Align::Shift(i32::MIN)).causal(),
    ] {
        right.validate().expect("legal");
        gpu().planner().plan(&right).expect("a plan");
    }
    good(&gpu());
    Program::shared().check();
}

/// In an arena elements of different types may share bytes.
#[test]
fn arenas_of_mixed_types() {
    // O: 160 numbers of 16 bits from the 800th on, the bytes 1600 .. 1920.
    let shape = Shape { batch: 1, ..SHAPE };
    let of = |k: u32, mask: u32| {
        Problem::new(shape)
            .arena()
            .element(Group::Queries, Element::F16)
            .layout(Operand::O, Layout::head_major(4, 5, 8).at(800))
            .layout(Operand::K, Layout::head_major(4, 7, 8).at(k))
            .layout(Operand::V, Layout::head_major(4, 7, 8).at(2000))
            .mask(BiasLayout { offset: mask, ..Default::default() })
    };
    let need = "disjoint elements within the arena";
    let (operand, o) = (Operand::O, 32 * 400);
    for (k, mask, other) in [
        (1600 / 4 - 223, o - 32, Operand::K),
        (1920 / 4 - 1, o - 32, Operand::K),
        (480, o, Operand::Mask),
        (480, 32 * 479, Operand::Mask),
    ] {
        let want = Error::Overlap { operand, other, need };
        let name = format!("k at {k}, mask at {mask}");
        let problem = of(k, mask);
        let got = [problem.validate().err(), gpu().planner().plan(&problem).err()];
        got.iter().for_each(|got| assert_same(&name, got.as_ref().expect("refused"), &want));
    }
    for (k, mask) in [(1600 / 4 - 224, o - 32), (480, o - 32), (480, 32 * 480)] {
        gpu().planner().plan(&of(k, mask)).expect("apart");
    }
}

/// All that a call may have besides Q, K and V, twice: batch entries, and packed sequences.
fn whole() -> [Problem; 2] {
    let rest = |shape| Problem::new(shape).alibi().sinks().mask_shape(&[5, 7]).bias_shape(&[7]);
    let aligned = |shape| rest(shape).align(Align::TopLeft);
    [aligned(SHAPE).q_lens().kv_lens(), aligned(Shape { batch: 1, ..SHAPE }).packed(2)]
}

const X: [f32; 448] = [0.5; 448];
const MAY: [bool; 36] = [true; 36];
const LENS: [u32; 3] = [5, 4, 3];
const BOUNDS: [u32; 4] = [0, 2, 5, 5];

/// Right inputs of either.
fn right(problem: &Problem) -> Inputs<'static> {
    let n = |operand| problem.elements(operand) as usize;
    let inputs = Inputs::new(&X[..n(Operand::Q)], &X[..n(Operand::K)], &X[..n(Operand::V)]);
    let inputs = inputs.bias(&X[..7]).mask(&MAY[..35]).slopes(&X[..4]).sinks(&X[..4]);
    match problem.table(Operand::QLens) {
        Some(_) => inputs.q_lens(&LENS[..2]).kv_lens(&LENS[..2]),
        None => inputs.cu_seqlens(&BOUNDS[..3], &BOUNDS[..3]),
    }
}

/// Each that is missing, too short, too long, or not the problem's.
#[test]
fn slices() {
    use Operand::{CuSeqlensKv, CuSeqlensQ, KvLens, Mask, QLens, Sinks, Slopes};
    /// Sets one of them to so many elements.
    fn put<'a>(mut inputs: Inputs<'a>, operand: Operand, n: Option<usize>) -> Inputs<'a> {
        let extras = &mut inputs.extras;
        match operand {
            Mask => extras.mask = n.map(|n| &MAY[..n]),
            QLens => extras.q_lens = n.map(|n| &LENS[..n]),
            KvLens => extras.kv_lens = n.map(|n| &LENS[..n]),
            CuSeqlensQ => extras.cu_seqlens_q = n.map(|n| &BOUNDS[..n]),
            CuSeqlensKv => extras.cu_seqlens_kv = n.map(|n| &BOUNDS[..n]),
            Slopes => extras.slopes = n.map(|n| &X[..n]),
            _ => extras.sinks = n.map(|n| &X[..n]),
        }
        inputs
    }
    let mut count = 0;
    for problem in whole() {
        let inputs = right(&problem);
        let want = cpu::attention(&problem, inputs).expect("right");
        let got = gpu().attention(&problem, inputs).expect("right");
        assert!(max_error(&got.o, &want.o) < 1e-5);
        let plain = Problem::new(problem.shape());
        let alone = Inputs::new(inputs.q, inputs.k, inputs.v);
        for operand in [Mask, QLens, KvLens, CuSeqlensQ, CuSeqlensKv, Slopes, Sinks] {
            let name = format!("{operand}");
            let n = match operand {
                Mask => 35,
                _ => problem.table(operand).map_or(0, |table| table.end - table.start),
            };
            if n == 0 {
                refused(
                    &name,
                    &problem,
                    put(inputs, operand, Some(1)),
                    &Error::Unexpected { operand },
                );
                count += 1;
                continue;
            }
            refused(&name, &problem, put(inputs, operand, None), &Error::Missing { operand });
            for got in [n - 1, n + 1, 0] {
                let want = Error::Length { operand, need: n, got };
                refused(&name, &problem, put(inputs, operand, Some(got as usize)), &want);
            }
            for got in [n as usize, 0] {
                let other = put(alone, operand, Some(got));
                refused(&name, &plain, other, &Error::Unexpected { operand });
            }
            count += 6;
        }
    }
    println!("{count} wrong slices");
    good(&gpu());
}

#[test]
fn values() {
    let [lengths, packed] = whole();
    let (of, own) = (right(&lengths), right(&packed));
    let past = |what, got| size(what, CAPACITY, got);
    let zero = |what, got| size(what, "0 at first", got);
    let falls = |what, got| size(what, NEVER, got);
    let b = &BOUNDS[..3];
    for (name, problem, inputs, want) in [
        ("q_lens", &lengths, of.q_lens(&[5, 6]), past("q_lens", 6)),
        ("q_lens", &lengths, of.q_lens(&[u32::MAX, 6]), past("q_lens", u32::MAX)),
        ("kv_lens", &lengths, of.kv_lens(&[8, 0]), past("kv_lens", 8)),
        ("q at first", &packed, own.cu_seqlens(&[1, 2, 3], b), zero("cu_seqlens_q", 1)),
        ("kv at first", &packed, own.cu_seqlens(b, &[7, 7, 7]), zero("cu_seqlens_kv", 7)),
        ("q falls", &packed, own.cu_seqlens(&[0, 5, 4], b), falls("cu_seqlens_q", 4)),
        ("kv falls", &packed, own.cu_seqlens(b, &[0, u32::MAX, 0]), falls("cu_seqlens_kv", 0)),
        ("q past", &packed, own.cu_seqlens(&[0, 5, 6], b), past("cu_seqlens_q", 6)),
        ("kv past", &packed, own.cu_seqlens(b, &[0, 8, 8]), past("cu_seqlens_kv", 8)),
    ] {
        refused(name, problem, inputs, &want);
        refused(&format!("{name}, after"), problem, inputs, &want);
    }
    let value = |what, need, got| Error::Value { what, need, got };
    for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let four = [0.0, 1.0, x, 2.0];
        let want = value("slopes", "finite numbers", x);
        refused("slopes", &lengths, of.slopes(&four), &want);
        if x == f32::NEG_INFINITY {
            gpu().attention(&lengths, of.sinks(&four)).expect("a sink may be -inf");
            continue;
        }
        let want = value("sinks", "numbers below infinity", x);
        refused("sinks", &packed, own.sinks(&four), &want);
    }
    good(&gpu());
}
