//! What is wrong with a merge, its slices and its buffers.

use wgpu_attention::half::f16;
use wgpu_attention::{Buffers, Element, Error, Layout, Merge, MergeInputs, Operand, Shape, cpu};

use super::{Memory, Tensors, check, shape};
use crate::errors::assert_same;
use crate::program::{Program, USAGE};

const ONE: &str = "at least 1";
const APART: &str = "strides that keep its written rows apart";
const ADDRESSABLE: &str = "at most 2^32 elements from the first to the last one used";
const EVEN: &str = "even strides and offset for 16-bit output in a GPU buffer";
const OVERLAP: &str = "a buffer of its own, or Merge::in_place for the result over part 0";
const STORAGE: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE;

fn merge() -> Merge {
    Merge::new(shape(2, 3, 5, 6), 2)
}

/// The next right merge.
fn good() {
    let merge = merge().accumulate().sinks();
    check(Program::shared(), &merge, &Tensors::<f32>::new(&merge, true, 1));
    Program::shared().check();
}

fn size(what: &'static str, need: &'static str, got: u128) -> Error {
    Error::Size { what, need, got }
}

#[test]
fn merges_that_cannot_be() {
    let new = |batch, heads, tokens, dim| Merge::new(shape(batch, heads, tokens, dim), 2);
    let past = 1u128 << 32;
    let unexpected = |operand| Error::Unexpected { operand };
    let apart = |operand, got| Error::Stride { operand, need: APART, got };
    let rows = |offset, token| Layout { offset, batch: 90, head: 30, token };
    let rule = "at most 2^31";
    let mut wrong = vec![
        (new(1, 1, 1, 0), size("value_dim", ONE, 0)),
        (new(1, 0, 1, 4), size("q_heads", ONE, 0)),
        (Merge::new(shape(1, 1, 1, 4), 0).in_place(), size("parts", "at least 1 in place", 0)),
        (merge().in_place().accumulate(), unexpected(Operand::O)),
        (merge().in_place().layout(Operand::O, rows(0, 6)), unexpected(Operand::O)),
        (merge().layout(Operand::Lse, rows(0, 1)).in_place(), unexpected(Operand::Lse)),
        (merge().part_stride(Operand::O, 1), unexpected(Operand::O)),
        (merge().part_stride(Operand::Lse, 1), unexpected(Operand::Lse)),
        (merge().layout(Operand::O, rows(0, 5)), apart(Operand::O, 5)),
        (merge().layout(Operand::Lse, rows(7, 0)), apart(Operand::Lse, 0)),
        (merge().in_place().layout(Operand::Parts, rows(0, 5)), apart(Operand::Parts, 5)),
        (merge().in_place().part_stride(Operand::Parts, 179), apart(Operand::Parts, 179)),
        (merge().in_place().part_stride(Operand::Parts, 0), apart(Operand::Parts, 0)),
        (merge().in_place().part_stride(Operand::PartsLse, 29), apart(Operand::PartsLse, 29)),
        (merge().part_stride(Operand::Parts, u32::MAX), size("parts", ADDRESSABLE, past - 1 + 180)),
        (
            Merge::new(shape(1, 1, 1, 1), u32::MAX).part_stride(Operand::PartsLse, 3),
            size("parts_lse", ADDRESSABLE, (past - 2) * 3 + 1),
        ),
        (merge().layout(Operand::O, rows(u32::MAX, 6)), size("o", ADDRESSABLE, past - 1 + 180)),
        (new(u32::MAX, 1, 1, 1), size("batch * q_heads * q_len", rule, past - 1)),
        (
            new(u32::MAX, u32::MAX, u32::MAX, u32::MAX),
            size("batch * q_heads * q_len", rule, (past - 1) * (past - 1) * (past - 1)),
        ),
        (new(1 << 10, 1 << 10, 1 << 10, 64), size("parts", ADDRESSABLE, past * 32)),
    ];
    let laid_out = [Operand::O, Operand::Lse, Operand::Parts, Operand::PartsLse];
    let others = Operand::ALL.iter().copied().filter(|o| !laid_out.contains(o));
    wrong.extend(others.map(|o| (merge().layout(o, rows(0, 6)), unexpected(o))));
    let attention = &Program::shared().attention;
    for (merge, want) in &wrong {
        let got = [
            merge.validate().err(),
            cpu::merge::<f32>(merge, MergeInputs::new(&[], &[])).err(),
            cpu::merge::<f16>(merge, MergeInputs::new(&[], &[])).err(),
            attention.plan_merge(merge).err(),
            pollster::block_on(attention.plan_merge_async(merge)).err(),
        ];
        for got in got {
            let name = format!("{merge:?}");
            assert_same(&name, &got.unwrap_or_else(|| panic!("{name}: accepted")), want);
        }
        Operand::ALL.iter().for_each(|&operand| {
            assert!(merge.bytes(operand) >= 4 || merge.elements(operand) == 0)
        });
    }
    println!("{} wrong merges", wrong.len());
    good();
}

/// Rows of 16 bits that are written begin on a word; those that are only read need not.
#[test]
fn odd_places_of_16_bits() {
    let attention = &Program::shared().attention;
    let odd = |operand, got| Error::Stride { operand, need: EVEN, got };
    let rows = |offset, head, token| Layout { offset, batch: 200, head, token };
    let half = merge().element(Element::F16).part_stride(Operand::Parts, 600);
    let wrong = [
        (half.clone().layout(Operand::O, rows(1, 40, 6)), odd(Operand::O, 1)),
        (half.clone().layout(Operand::O, rows(0, 41, 6)), odd(Operand::O, 41)),
        (half.clone().layout(Operand::O, rows(0, 40, 7)), odd(Operand::O, 7)),
        (half.clone().in_place().layout(Operand::Parts, rows(3, 40, 6)), odd(Operand::Parts, 3)),
        (half.clone().in_place().part_stride(Operand::Parts, 601), odd(Operand::Parts, 601)),
        (Merge::new(shape(1, 1, 2, 5), 2).element(Element::Bf16), odd(Operand::O, 5)),
    ];
    for (merge, want) in &wrong {
        merge.validate().expect("no device, no words");
        let error = attention.plan_merge(merge).expect_err("odd rows");
        assert_same(&format!("{merge:?}"), &error, want);
        attention.plan_merge(&merge.clone().element(Element::F32)).expect("32 bits");
    }
    attention.plan_merge(&half.layout(Operand::Parts, rows(3, 41, 7))).expect("only read");
    // One row has no neighbour.
    let one = Merge::new(Shape { q_heads: 1, ..shape(1, 1, 1, 5) }, 2).element(Element::F16);
    attention.plan_merge(&one).expect("one row");
    good();
}

#[test]
fn wrong_slices() {
    let merge = merge().sinks();
    let tensors = Tensors::<f32>::new(&merge, false, 2);
    let right = tensors.inputs();
    let sinks = tensors.sinks.as_deref().expect("given");
    let held = merge.clone().accumulate();
    let (o, lse) = (vec![0.0; 180], vec![0.0; 30]);
    let length = |operand, need, got| Error::Length { operand, need, got };
    let missing = |operand| Error::Missing { operand };
    let unexpected = |operand| Error::Unexpected { operand };
    let sink = |got| Error::Value { what: "sinks", need: "numbers below infinity", got };
    let bare = MergeInputs::new(&tensors.parts, &tensors.parts_lse);
    let (short, longer) = (&tensors.parts[1..], [&tensors.parts[..], &[0.0]].concat());
    let wrong = [
        (
            &merge,
            MergeInputs::new(short, &tensors.parts_lse).sinks(sinks),
            length(Operand::Parts, 360, 359),
        ),
        (
            &merge,
            MergeInputs::new(&longer, &tensors.parts_lse).sinks(sinks),
            length(Operand::Parts, 360, 361),
        ),
        (
            &merge,
            MergeInputs::new(&tensors.parts, &lse).sinks(sinks),
            length(Operand::PartsLse, 60, 30),
        ),
        (&merge, bare, missing(Operand::Sinks)),
        (&merge, right.sinks(&[1.0, 2.0]), length(Operand::Sinks, 3, 2)),
        (&merge, right.sinks(&[1.0, f32::INFINITY, 0.0]), sink(f32::INFINITY)),
        (&merge, right.sinks(&[f32::NAN, 1.0, 0.0]), sink(f32::NAN)),
        (&merge, right.held(&o, &lse), unexpected(Operand::O)),
        (&held, right, missing(Operand::O)),
        (&held, right.held(&o[1..], &lse), length(Operand::O, 180, 179)),
        (&held, right.held(&o, &lse[..29]), length(Operand::Lse, 30, 29)),
    ];
    for (merge, inputs, want) in &wrong {
        let error = cpu::merge(merge, *inputs).expect_err("wrong slices");
        assert_same("slices", &error, want);
    }
    let own = merge.clone().part_stride(Operand::Parts, 180);
    let inputs = MergeInputs::new(&longer, &tensors.parts_lse).sinks(sinks);
    cpu::merge(&own, inputs).expect("a part of something larger");
}

#[test]
fn wrong_buffers() {
    let program = Program::shared();
    let spare = program.empty(1 << 16, USAGE);
    for merge in [merge().sinks(), merge().accumulate().sinks(), merge().in_place().sinks()] {
        let in_place = merge.clone().in_place() == merge;
        let held = merge.clone().accumulate() == merge;
        let memory = Memory::new(program, &merge, &Tensors::<f32>::new(&merge, held, 3));
        let plan = program.attention.plan_merge(&merge).expect("a plan");
        let with = |operand: Operand, other: Option<&wgpu::Buffer>| {
            let kept = memory.buffers.iter().filter(|b| b.0 != operand);
            let kept = kept.fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
            let buffers = other.into_iter().fold(kept, |all, buffer| all.with(operand, buffer));
            let awaited = pollster::block_on(plan.bind_async(buffers)).map(|_| ());
            assert_eq!(awaited, plan.bind(buffers).map(|_| ()));
            awaited
        };
        for &(operand, _) in &memory.buffers {
            let refuse = |buffer: Option<&wgpu::Buffer>, want: Error| {
                let error = with(operand, buffer).expect_err("a wrong buffer");
                assert_same(&format!("{operand} {buffer:?}"), &error, &want);
            };
            refuse(None, Error::Missing { operand });
            let bytes = merge.bytes(operand);
            for short in [bytes - 1, bytes - 4, 0] {
                let length = Error::Length { operand, need: bytes / 4, got: short / 4 };
                refuse(Some(&program.empty(short, USAGE)), length);
            }
            let got = USAGE - STORAGE;
            refuse(Some(&program.empty(bytes, got)), Error::Usage { operand, need: STORAGE, got });
            with(operand, Some(&program.empty(bytes, STORAGE))).expect("just enough");
        }
        let mut others = vec![Operand::Q, Operand::K, Operand::X, Operand::Arena, Operand::Sinks];
        others.extend([Operand::O, Operand::Lse].into_iter().filter(|_| in_place));
        for operand in others {
            let error = with(operand, Some(&spare)).expect_err("not wanted");
            assert_same("not wanted", &error, &Error::Unexpected { operand });
        }
        with(Operand::Scratch, Some(&spare)).expect("memory is never too much");
        // Whatever is written has a buffer of its own.
        let written = match in_place {
            true => [Operand::Parts, Operand::PartsLse],
            false => [Operand::O, Operand::Lse],
        };
        for (at, (a, _)) in memory.buffers.iter().enumerate() {
            for (b, _) in &memory.buffers[at + 1..] {
                let (a, b) = (*a, *b);
                let buffers = memory.given().with(a, &spare).with(b, &spare);
                let result = plan.bind(buffers);
                if !written.contains(&a) && !written.contains(&b) {
                    result.expect("what is read may share");
                    continue;
                }
                let error = result.expect_err("a result shares memory");
                let Error::Overlap { operand, other, .. } = error else { panic!("{error}") };
                assert!(written.contains(&operand) && [a, b].contains(&other));
                assert_same("overlap", &error, &Error::Overlap { operand, other, need: OVERLAP });
            }
        }
    }
    good();
}

#[test]
fn devices_too_small() {
    let default = wgpu::Limits::default;
    let limit = |what, need, got| Error::Limit { what, need, got };
    let large = Merge::new(shape(1, 1, 1 << 16, 600), 1);
    let bytes = large.bytes(Operand::Parts);
    let devices = [
        (wgpu::Limits { max_bindings_per_bind_group: 20, ..default() }, merge(), {
            limit("max_bindings_per_bind_group", 21, 20)
        }),
        (wgpu::Limits { max_storage_buffers_per_shader_stage: 4, ..default() }, merge().sinks(), {
            limit("max_storage_buffers_per_shader_stage", 5, 4)
        }),
        (default(), large, limit("parts", bytes, default().max_storage_buffer_binding_size)),
        (
            wgpu::Limits { max_compute_workgroups_per_dimension: 3, ..default() },
            Merge::new(shape(1, 1, 28, 256), 1),
            limit("workgroups", 28, 27),
        ),
    ];
    for (limits, merge, want) in devices {
        let descriptor = wgpu::DeviceDescriptor { required_limits: limits, ..Default::default() };
        let (device, _queue) = wgpu::Device::noop(&descriptor);
        let attention = wgpu_attention::Attention::new(&device);
        let error = attention.plan_merge(&merge).expect_err("too small a device");
        assert_same(&format!("{merge:?}"), &error, &want);
    }
    good();
}
