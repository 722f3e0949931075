//! Parts and results anywhere in their buffers, and grids past one dimension.

use wgpu_attention::half::{bf16, f16};
use wgpu_attention::{Attention, Element, Layout, LoopLimit, Merge, Operand, Options, Scalar, cpu};

use super::{Tensors, check, off, run, shape};
use crate::program::Program;

/// [batch 2, heads 3, tokens 5], 3 parts of 6 dims.
fn merge() -> Merge {
    Merge::new(shape(2, 3, 5, 6), 3)
}

fn laid_out() -> Vec<(&'static str, Merge)> {
    let token_major = |dim| Layout::token_major(3, 5, dim);
    let far = |dim| Layout::head_major(3, 5, dim).at(100_002);
    // [batch, token, part, head, dim]
    let woven = |dim| Layout { offset: 4, batch: 45 * dim, head: dim, token: 9 * dim };
    let parts = |merge: Merge, layout: fn(u32) -> Layout| {
        merge.layout(Operand::Parts, layout(6)).layout(Operand::PartsLse, layout(1))
    };
    let result = |merge: Merge, layout: fn(u32) -> Layout| {
        merge.layout(Operand::O, layout(6)).layout(Operand::Lse, layout(1))
    };
    let steps = |merge: Merge, o: u32, lse: u32| {
        merge.part_stride(Operand::Parts, o).part_stride(Operand::PartsLse, lse)
    };
    vec![
        ("token-major parts", parts(merge(), token_major)),
        ("token-major result", result(merge(), token_major)),
        ("token-major, in place", parts(merge(), token_major).in_place()),
        ("far away", result(parts(merge(), far), far)),
        ("far away, held", result(parts(merge(), far), far).accumulate()),
        ("far away, in place", parts(merge(), far).in_place()),
        ("far apart", steps(merge(), 70_000, 50_001)),
        ("far apart, in place", steps(merge(), 70_000, 50_001).in_place()),
        ("woven", steps(parts(merge(), woven), 18, 3)),
        ("woven, in place", steps(parts(merge(), woven), 18, 3).in_place()),
        ("woven result, held", result(merge(), woven).accumulate()),
        ("one part three times", steps(merge(), 0, 0)),
        ("one batch entry for all", {
            merge().layout(Operand::Parts, Layout { batch: 0, ..Layout::head_major(3, 5, 6) })
        }),
        ("odd parts", {
            let odd = Layout { offset: 3, batch: 107, head: 35, token: 7 };
            merge().layout(Operand::Parts, odd).part_stride(Operand::Parts, 211)
        }),
    ]
}

fn everywhere<T: Scalar>() {
    for (seed, (name, merge)) in (1..).zip(laid_out()) {
        println!("{name}, {:?}", T::ELEMENT);
        let merge = merge.element(T::ELEMENT);
        let held = merge.clone().accumulate() == merge;
        check(Program::shared(), &merge, &Tensors::<T>::new(&merge, held, seed));
        let merge = merge.sinks();
        check(Program::shared(), &merge, &Tensors::<T>::new(&merge, held, seed));
    }
}

#[test]
fn any_layout_will_do() {
    everywhere::<f32>();
    everywhere::<f16>();
    everywhere::<bf16>();
}

/// What O and LSE held does not count unless it is to be accumulated: `run` fills them with NaN.
#[test]
fn no_parts_are_empty() {
    let program = Program::shared();
    let merge = Merge::new(shape(2, 3, 5, 6), 0);
    let tensors = Tensors::<f32>::new(&merge, false, 1);
    let (o, lse) = run(program, &program.attention, &merge, &tensors);
    assert_eq!((o, lse), (vec![0.0; 180], vec![f32::NEG_INFINITY; 30]));
    // Nothing but the sinks is added to what is held.
    let merge = merge.accumulate().sinks();
    check(program, &merge, &Tensors::<f32>::new(&merge, true, 2));
}

#[test]
fn grids_fold() {
    // One row a workgroup, 300 of them.
    for most in [7, 64, 299] {
        let limits =
            wgpu::Limits { max_compute_workgroups_per_dimension: most, ..wgpu::Limits::default() };
        let program = Program::new(limits);
        let merge = Merge::new(shape(2, 3, 50, 256), 3).accumulate();
        check(&program, &merge, &Tensors::<f32>::new(&merge, true, 8));
        let grid = program.attention.plan_merge(&merge).expect("a plan").describe().expect("work");
        assert!(grid.grid.iter().all(|&n| n <= most) && grid.grid[1] > 1, "{:?}", grid.grid);
    }
    // More than 65,535 on any device; the same part twice.
    let merge = Merge::new(shape(2, 3, 11_000, 256), 2).element(Element::Bf16);
    let merge = merge.part_stride(Operand::Parts, 0);
    check(Program::shared(), &merge, &Tensors::<bf16>::new(&merge, false, 9));
}

/// As few invocations as a device may have, and as few loop iterations as will do.
#[test]
fn small_devices_merge() {
    let limits = wgpu::Limits {
        max_compute_invocations_per_workgroup: 3,
        max_compute_workgroup_size_x: 3,
        ..wgpu::Limits::default()
    };
    let program = Program::new(limits);
    for dim in [3, 4, 5, 19] {
        let merge = Merge::new(shape(1, 2, 5, dim), 3).in_place();
        check(&program, &merge, &Tensors::<f32>::new(&merge, false, 8));
    }
    let program = Program::shared();
    let limit = |most| Options::default().loop_limit(LoopLimit::Iterations(most));
    // m and l: 7 trips and a test each; one quad a thread: 1 trip, 7 parts, two tests.
    let (merge, need) = (Merge::new(shape(1, 2, 5, 8), 7), 2 * 8 + 1 + 8 + 1);
    let tensors = Tensors::<f32>::new(&merge, false, 8);
    let want = cpu::merge(&merge, tensors.inputs()).expect("cpu");
    let got = run(program, &Attention::with(&program.device, limit(need)), &merge, &tensors);
    assert!(off(&got, &(want.o, want.lse.expect("always"))) <= 1.0);
    let error = Attention::with(&program.device, limit(need - 1)).plan_merge(&merge);
    let error = error.expect_err("too few iterations").to_string();
    assert!(error.contains("need 26, the device allows 25"), "{error}");
}
