//! Layers whose attention has a mask, lengths, packed sequences, ALiBi and sinks.

use wgpu_attention::{
    Align, BiasLayout, Buffers, Choice, Element, Error, Group, LayerInputs, Method, MultiHead,
    Operand, Problem, Shape, cpu,
};

use super::errors::good;
use super::{TOLERANCE, Tensors, layer_error};
use crate::errors::{assert_same, gpu};
use crate::program::{Program, USAGE};
use crate::support::{default_limits_gpu, max_error};

const SHAPE: Shape = Shape::self_attention(3, 4, 50, 8).kv_heads(2);
const SLOPES: [f32; 4] = [0.5, 0.25, 0.0, -0.125];
const SINKS: [f32; 4] = [0.0, 2.0, -3.0, f32::NEG_INFINITY];

fn may(n: u32) -> Vec<bool> {
    (0..n).map(|at| at % 7 != 2 && at % 5 != 3).collect()
}

/// A layer, and what its attention has besides.
struct Case {
    name: &'static str,
    layer: MultiHead,
    mask: Vec<bool>,
    q: Vec<u32>,
    kv: Vec<u32>,
}

impl Case {
    fn inputs<'a>(&'a self, tensors: &'a Tensors) -> LayerInputs<'a> {
        let (mut inputs, problem) = (tensors.inputs(), self.layer.problem());
        let has = |operand| problem.table(operand).is_some();
        let extras = &mut inputs.extras;
        extras.mask = (!self.mask.is_empty()).then_some(&self.mask[..]);
        extras.q_lens = has(Operand::QLens).then_some(&self.q[..]);
        extras.kv_lens = has(Operand::KvLens).then_some(&self.kv[..]);
        extras.cu_seqlens_q = has(Operand::CuSeqlensQ).then_some(&self.q[..]);
        extras.cu_seqlens_kv = has(Operand::CuSeqlensKv).then_some(&self.kv[..]);
        extras.slopes = has(Operand::Slopes).then_some(&SLOPES[..]);
        extras.sinks = has(Operand::Sinks).then_some(&SINKS[..]);
        inputs
    }
}

fn cases() -> Vec<Case> {
    let causal = |shape| Problem::new(shape).causal().align(Align::BottomRight);
    let cross = Shape { q_len: 20, ..SHAPE };
    let one = Shape { batch: 1, ..SHAPE };
    let strided = BiasLayout { offset: 3, batch: 0, head: 11, query: 53, key: 1 };
    let case = |name, layer, mask: u32, q: &[u32], kv: &[u32]| Case {
        name,
        layer,
        mask: may(mask),
        q: q.into(),
        kv: kv.into(),
    };
    let all = causal(SHAPE).mask_shape(&[50, 50]).bias_shape(&[50]).alibi().sinks().lse();
    vec![
        case("mask", MultiHead::new(24, causal(SHAPE).mask_shape(&[3, 1, 1, 50])), 150, &[], &[]),
        case("a strided mask", MultiHead::new(24, causal(SHAPE).mask(strided)), 2700, &[], &[]),
        case("kv_lens", MultiHead::new(24, causal(SHAPE).kv_lens()), 0, &[], &[50, 0, 17]),
        case("alibi", MultiHead::new(20, causal(SHAPE).alibi()).biases(), 0, &[], &[]),
        case("sinks", MultiHead::new(20, causal(SHAPE).sinks().lse()).residual(), 0, &[], &[]),
        case(
            "all",
            MultiHead::new(24, all.clone().q_lens().kv_lens()).biases().residual(),
            2500,
            &[50, 31, 0],
            &[50, 40, 33],
        ),
        case(
            "all, stored",
            MultiHead::new(24, all.kv_lens().scores().weights()),
            2500,
            &[],
            &[1, 49, 32],
        ),
        case(
            "cross",
            MultiHead::new(18, causal(cross).mask_shape(&[20, 50]).kv_lens().alibi())
                .context(30)
                .biases(),
            1000,
            &[],
            &[20, 50, 3],
        ),
        case(
            "packed",
            MultiHead::new(24, causal(one).packed(4).alibi().sinks().lse()).residual(),
            0,
            &[0, 0, 17, 18, 45],
            &[0, 3, 17, 40, 50],
        ),
    ]
}

#[test]
fn layers_with_extras_equal_the_cpu() {
    let mut worst = 0.0f32;
    for (seed, case) in (1..).zip(cases()) {
        let tensors = Tensors::new(&case.layer, seed);
        let inputs = case.inputs(&tensors);
        let want = cpu::multi_head(&case.layer, inputs).expect(case.name);
        // Each layer on one device by one method, and on the other by the other.
        for (at, gpu) in [crate::support::gpu(), default_limits_gpu()].into_iter().enumerate() {
            for choice in [Choice::default(), Choice::method(Method::Staged)]
                .into_iter()
                .skip((at + seed as usize) % 2)
                .step_by(2)
            {
                let got = gpu.multi_head_async(&case.layer, inputs, choice);
                let got = pollster::block_on(got).expect(case.name);
                let error = layer_error(&got, &want);
                assert!(error <= TOLERANCE, "{}, {choice:?}: {error:e}", case.name);
                worst = worst.max(error);
            }
        }
    }
    println!("worst {worst:e}");
}

/// A program's own buffers: mask and tables are needed, and tables may be rewritten.
#[test]
fn masks_and_tables_in_buffers() {
    let program = Program::shared();
    let problem = Problem::new(SHAPE).causal().align(Align::BottomRight);
    let layer = MultiHead::new(24, problem.mask_shape(&[50]).kv_lens().sinks());
    let plan = program.attention.plan_multi_head(&layer).expect("a plan");
    let tensors = Tensors::new(&layer, 5);
    let mut given: Vec<_> = tensors.given().map(|(o, x)| (o, program.buffer(x))).collect();
    for (operand, bytes) in [
        (Operand::Y, 4 * layer.elements(Operand::Y)),
        (Operand::Mask, 8),
        (Operand::Tables, 28),
        (Operand::Projected, plan.projected_bytes()),
        (Operand::Scratch, plan.scratch_bytes()),
    ] {
        given.push((operand, program.empty(bytes, USAGE)));
    }
    let buffer = |operand| &given.iter().find(|g| g.0 == operand).expect("given").1;
    let with = |operand: Operand, other: Option<&wgpu::Buffer>| {
        let kept = given.iter().filter(|g| g.0 != operand);
        let buffers = kept.fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
        plan.bind(other.into_iter().fold(buffers, |all, b| all.with(operand, b)))
    };
    for (operand, need) in [(Operand::Mask, 2), (Operand::Tables, 7)] {
        let error = with(operand, None).expect_err("missing");
        assert_same("missing", &error, &Error::Missing { operand });
        let short = program.empty(4 * need - 4, USAGE);
        let error = with(operand, Some(&short)).expect_err("short");
        assert_same("short", &error, &Error::Length { operand, need, got: need - 1 });
    }
    let may = may(50);
    let mut words = [0u32; 2];
    may.iter().enumerate().for_each(|(j, &may)| words[j / 32] |= u32::from(may) << (j % 32));
    program.queue.write_buffer(buffer(Operand::Mask), 0, bytemuck::bytes_of(&words));
    let sinks = layer.problem().table(Operand::Sinks).expect("sinks").start;
    let tables = buffer(Operand::Tables);
    program.queue.write_buffer(tables, 4 * sinks, bytemuck::bytes_of(&SINKS));
    let bound = with(Operand::B, None).expect("right buffers");
    for lens in [[50, 0, 17], [0, 0, 0], [1, 32, 50], [50, 0, 17]] {
        program.queue.write_buffer(tables, 0, bytemuck::bytes_of(&lens));
        program.submit(|encoder| bound.encode_in(encoder));
        let inputs = tensors.inputs().mask(&may).kv_lens(&lens).sinks(&SINKS);
        let want = cpu::multi_head(&layer, inputs).expect("cpu");
        let error = max_error(&program.read(buffer(Operand::Y)), &want.y);
        assert!(error <= TOLERANCE, "{lens:?}: {error:e}");
    }
    program.check();
}

/// A layer is f32, and refuses what its attention refuses.
#[test]
fn layers_that_cannot_be() {
    for (group, operand) in [(Group::Queries, Operand::Q), (Group::Keys, Operand::K)] {
        for got in [Element::F16, Element::Bf16] {
            let layer = MultiHead::new(6, Problem::new(SHAPE).element(group, got));
            refused(&layer, None, &Error::Element { operand, need: "f32 in a layer", got });
        }
    }
    let tokens = Shape { batch: 1, ..SHAPE };
    let packed = MultiHead::new(24, Problem::new(tokens).packed(1).sinks());
    let tensors = Tensors::new(&packed, 1);
    let right = tensors.inputs().cu_seqlens(&[0, 50], &[0, 50]).sinks(&SINKS);
    let unexpected = |operand| Error::Unexpected { operand };
    let falls = Error::Size { what: "cu_seqlens_kv", need: "0 at first", got: 1 };
    let mut bare = right;
    bare.extras.sinks = None;
    for (inputs, want) in [
        (bare, Error::Missing { operand: Operand::Sinks }),
        (right.sinks(&SINKS[1..]), Error::Length { operand: Operand::Sinks, need: 4, got: 3 }),
        (right.slopes(&SLOPES), unexpected(Operand::Slopes)),
        (right.kv_lens(&[50]), unexpected(Operand::KvLens)),
        (right.mask(&[true]), unexpected(Operand::Mask)),
        (right.cu_seqlens(&[0, 50], &[1, 50]), falls),
    ] {
        refused(&packed, Some(inputs), &want);
    }
    gpu().multi_head(&packed, right).expect("right");
    good();
}

/// Refused by everyone, for its inputs or without any.
fn refused(layer: &MultiHead, inputs: Option<LayerInputs<'_>>, want: &Error) {
    let given = inputs.unwrap_or(LayerInputs::new(&[], [&[]; 4]));
    let mut got = vec![cpu::multi_head(layer, given).err(), gpu().multi_head(layer, given).err()];
    if inputs.is_none() {
        got.extend([layer.validate().err(), gpu().planner().plan_multi_head(layer).err()]);
    }
    got.iter().for_each(|got| assert_same("layer", got.as_ref().expect("refused"), want));
}
