//! The same asked for in other words, in parts or again; and what is too large to ask for.

use wgpu_attention::half::{bf16, f16};
use wgpu_attention::{Align, Band, Element, Error, Gpu, Group, Inputs, Layout, Operand, Problem};

use super::of;
use crate::checks::{FLASH, LSE, STAGED, limited};
use crate::kernels::Walk;
use crate::support::{Data, gpu, max_error};
use wgpu_attention_support::answers::stored;
use wgpu_attention_support::data::max_error_of;

/// pytorch#174861, mlx#4022: few queries and many keys, split and merged.
#[test]
fn split_keys_equal_one_sweep() {
    let problem = of([1, 32, 2, 1, 1024, 128, 128]);
    let (data, split) = (Data::new(&problem, 2), limited(1200));
    let [q, k, v] = [&data.q, &data.k, &data.v].map(|x| stored::<bf16>(x));
    for choice in [FLASH, STAGED] {
        let plan = split.planner().plan_with(&problem, choice).expect("a good problem");
        assert!(plan.describe().split_keys.is_some_and(|keys| keys <= 512), "{choice:?}");
        let run = |gpu: &Gpu| {
            let got = gpu.attention_with(&LSE(problem.clone()), Inputs::new(&q, &k, &v), choice);
            let got = got.expect("a good call");
            (got.o.iter().map(|o| o.to_f32()).collect::<Vec<_>>(), got.lse.expect("wanted"))
        };
        let ((one, one_lse), (split, split_lse)) = (run(gpu()), run(&split));
        // A sum a little off may round to bf16's next number.
        let next = |o: f32| 3e-6 + o.abs() * 2f32.powi(-7);
        let error = max_error_of(&split, &one, next);
        assert!(error <= 1.0, "{choice:?}: {error} times what is allowed");
        let error = max_error(&split_lse, &one_lse);
        assert!(error <= 6e-6, "{choice:?}, LSE: {error}");
    }
}

/// flash-attention#895 and pytorch#181133: the same in other words gives the same bits.
#[test]
fn equal_problems_give_equal_bits() {
    let wide = of([1, 1, 1, 90, 33, 8, 8]);
    let bounded = |right| {
        let band = Band { left: None, right: Some(right) };
        wide.clone().band(band).align(Align::TopLeft)
    };
    let data = Data::new(&wide, 3);
    let head_major = of([84, 3, 3, 3, 3, 8, 8]);
    let token_major = [Operand::Q, Operand::K, Operand::V, Operand::O]
        .into_iter()
        .fold(head_major.clone(), |all, o| all.layout(o, Layout::token_major(3, 3, 8)));
    let rows = Data::new(&head_major, 4);
    // Three heads of three tokens: the same swap both ways.
    let swapped = |x: &[f32]| -> Vec<f32> {
        let row = |at: usize| &x[(at / 9 * 9 + at % 3 * 3 + at / 3 % 3) * 8..][..8];
        (0..x.len() / 8).flat_map(row).copied().collect()
    };
    let [q, k, v] = [&rows.q, &rows.k, &rows.v].map(|x| swapped(x));
    Walk::new("the same in other words").each(&wide, |kernel| {
        let run = |problem: &Problem, inputs| kernel.run(problem, inputs).o;
        let open = run(&wide, data.inputs());
        for right in [i32::MAX as u32, u32::MAX, 33] {
            assert!(run(&bounded(right), data.inputs()) == open, "right {right}, {}", kernel.name);
        }
    });
    Walk::new("token-major").each(&head_major, |kernel| {
        let run = |problem: &Problem, inputs| kernel.run(problem, inputs).o;
        let contiguous = run(&head_major, rows.inputs());
        let permuted = run(&token_major, Inputs::new(&q, &k, &v));
        assert!(swapped(&permuted) == contiguous, "token-major, {}", kernel.name);
    });
}

/// onnxruntime#26064: heads that share keys, and a copy of the keys for each of them.
#[test]
fn shared_keys_equal_copies() {
    let shared = of([2, 6, 2, 33, 65, 8, 8]).causal().align(Align::BottomRight);
    let copied = of([2, 6, 6, 33, 65, 8, 8]).causal().align(Align::BottomRight);
    let x = Data::new(&shared, 7);
    let copies = |x: &[f32]| -> Vec<f32> {
        x.chunks(65 * 8).flat_map(|head| [head; 3]).flatten().copied().collect()
    };
    let (k, v) = (copies(&x.k), copies(&x.v));
    Walk::new("shared keys").each(&shared, |kernel| {
        let copied = kernel.run(&copied, Inputs::new(&x.q, &k, &v)).o;
        assert!(kernel.run(&shared, x.inputs()).o == copied, "{}", kernel.name);
    });
}

/// exllamav3#316: four runs, one result.
#[test]
fn four_runs_give_one_result() {
    let problem = of([1, 2, 2, 512, 512, 20, 20]);
    let data = Data::new(&problem, 5);
    let [q, k, v] = [&data.q, &data.k, &data.v].map(|x| stored::<f16>(x));
    let stored = problem.clone().element(Group::Queries, Element::F16);
    let stored = stored.element(Group::Keys, Element::F16);
    Walk::new("four runs").each(&stored, |kernel| {
        let inputs = Inputs::new(&q, &k, &v);
        let run = || kernel.gpu().attention_with(&problem, inputs, kernel.choice());
        let first = run().expect("a good call");
        assert!((0..3).all(|_| run().as_ref() == Ok(&first)), "{}", kernel.name);
    });
}

/// What cannot be addressed or bound is an error, before anything is allocated.
#[test]
fn too_large_is_an_error() {
    let plan = |problem: &Problem, choice| gpu().planner().plan_with(problem, choice).map(|_| ());
    // pytorch#149261: stored scores of more than 2^31 bytes.
    let square = |n| of([1, 1, 1, n, n, 8, 8]);
    let long = square(29_640);
    assert_eq!(plan(&long, FLASH), Ok(()));
    let most = gpu().device().limits().max_storage_buffer_binding_size;
    let stored = plan(&long, STAGED);
    if most < 29_640 * 29_640 * 4 {
        assert!(matches!(stored, Err(Error::Limit { .. })), "{stored:?}");
    }
    // mlx#2894: a mask of more than 2^31 elements, and of more than 2^32: of bits there can be as
    // many as the device binds, of floats there cannot.
    for n in [46_342, 70_000] {
        let bound = plan(&square(n).mask_shape(&[n, n]), FLASH);
        if most < u64::from(n) * u64::from(n.div_ceil(32)) * 4 {
            assert!(matches!(bound, Err(Error::Limit { what: "mask", .. })), "{bound:?}");
        } else {
            assert_eq!(bound, Ok(()));
        }
    }
    let biased = |n: u32| square(n).bias_shape(&[n, n]);
    let bound = plan(&biased(46_342), FLASH);
    if most < 46_342 * 46_342 * 4 {
        assert!(matches!(bound, Err(Error::Limit { what: "bias", .. })), "{bound:?}");
    }
    let past = plan(&biased(70_000), FLASH);
    assert!(matches!(past, Err(Error::Size { .. } | Error::Broadcast { .. })), "{past:?}");
    // mlx#2835: alignment is asked for, not guessed.
    let unaligned = plan(&of([4, 12, 12, 32, 1024, 64, 64]).causal(), FLASH);
    assert_eq!(unaligned, Err(Error::Align { q_len: 32, kv_len: 1024 }));
}
