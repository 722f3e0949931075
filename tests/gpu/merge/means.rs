//! Means of parts whose O is near the largest number of its type.

use wgpu_attention::half::bf16;
use wgpu_attention::{Element, Merge, Scalar};

use super::{Tensors, run, shape};
use crate::program::Program;

/// Parts that are all the same large number, of equal weights and of random ones.
fn check<T: Scalar>(parts: u32, most: f64) {
    let program = Program::shared();
    for (sinks, in_place) in [(false, false), (true, false), (false, true)] {
        let merge = Merge::new(shape(1, 2, 3, 8), parts).element(T::ELEMENT);
        let merge = if sinks { merge.sinks() } else { merge };
        let merge = if in_place { merge.in_place() } else { merge };
        for seed in [0, 1] {
            let mut tensors = Tensors::<T>::new(&merge, false, seed);
            let signs = [1.0, -1.0, 0.98];
            let all = tensors.parts.iter_mut().enumerate();
            all.for_each(|(at, o)| *o = T::from_f64(most * signs[at % 8 % 3]));
            if seed == 0 {
                tensors.parts_lse.fill(-2.0);
            }
            // So small that it takes nothing.
            tensors.sinks = tensors.sinks.map(|sinks| vec![-90.0; sinks.len()]);
            let rows = tensors.parts_lse.len() / parts as usize;
            let empty = |row: usize| {
                (0..parts as usize).all(|n| tensors.parts_lse[n * rows + row] == f32::NEG_INFINITY)
            };
            let (o, _) = run(program, &program.attention, &merge, &tensors);
            for (at, got) in o[..rows * 8].iter().enumerate() {
                let want = if empty(at / 8) { 0.0 } else { most * signs[at % 8 % 3] };
                let got = got.to_f64();
                let far = (got - want).abs() / most;
                let rounding = if T::ELEMENT == Element::F32 { 2e-6 } else { 2f64.powi(-7) };
                assert!(
                    got.abs() <= most && far <= rounding,
                    "{parts} parts of {most:e}, sinks {sinks}, in place {in_place}, {at}: {got:e}"
                );
            }
        }
    }
}

#[test]
fn means_of_the_largest_numbers() {
    for parts in [1, 2, 3, 5, 7, 11, 13, 100] {
        check::<f32>(parts, f32::MAX.into());
        check::<bf16>(parts, bf16::MAX.to_f64());
    }
}
