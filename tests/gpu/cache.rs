//! Caches that grow on the device, against their twin on the CPU.

mod both;
mod buffers;
mod device_lengths;
mod edges;
mod errors;
mod sharing;
mod steps;

use both::{Both, Setup};
use wgpu_attention::{CacheShape, Choice, Element, Method, Pairing, Pool, Rotary};

use crate::program::Program;

/// Sequences of unequal lengths grow by unequal steps, in every storage type and place.
#[test]
fn every_type_in_every_place() {
    let program = Program::shared();
    let plain = CacheShape::new(3, 2, 40, 10).value_dim(7);
    for pool in [Pool::Buffer, Pool::Texture] {
        for (element, odd) in [
            (Element::F32, 1e-6),
            (Element::F16, 1e-6),
            (Element::Bf16, 1e-6),
            (Element::Int8, 0.04),
        ] {
            for shape in [plain, plain.paged(8, 11), plain.paged(3, 40)] {
                let shape = shape.element(element).pool(pool);
                for rotary in [None, Some(Rotary::new(4, 64, Pairing::Halves))] {
                    let setup = Setup { rotary, ..Setup::new(shape, 6, 5) };
                    let name = format!("{shape:?} {rotary:?}");
                    let mut both = Both::new(program, &program.attention, &setup);
                    for counts in [[5, 1, 0], [1, 0, 3], [0, 0, 0], [5, 5, 5], [1, 1, 1]] {
                        both.step(&counts).expect(&name);
                        let (rows, lens) = both.rows_error(&program.attention);
                        assert_eq!(lens, both.twin.lens(), "{name}");
                        // A byte may round the other way.
                        assert!(rows <= odd, "{name}: rows off by {rows}");
                        let [o, lse] = both.errors();
                        let most = if element == Element::Int8 { 0.02 } else { 4e-6 };
                        assert!(o <= most && lse <= most, "{name} {counts:?}: {o:e}, {lse:e}");
                        assert!(rotary.is_none() || both.rotated_error() <= 1e-6, "{name}");
                    }
                }
            }
        }
    }
}

/// The same rows in pages of several sizes and in one piece give the same bits.
#[test]
fn paged_equals_contiguous() {
    let program = Program::shared();
    let plain = CacheShape::new(2, 2, 700, 16);
    let run = |shape: CacheShape, method: Method| {
        let setup = Setup::new(shape, 4, 300);
        let plan = program.attention.plan_with(&setup.problem(), Choice::method(method));
        let plan = plan.expect("a plan");
        let mut both = Both::with_plan(program, &program.attention, &setup, &plan);
        both.step(&[300, 7]).expect("room");
        both.step(&[299, 300]).expect("room");
        let [o, lse] = both.errors();
        assert!(o <= 4e-6 && lse <= 4e-6, "{shape:?}: {o:e} {lse:e}");
        both.output().into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    for method in [Method::Flash, Method::Decode] {
        let want = run(plain.pool(Pool::Buffer), method);
        for shape in [plain, plain.paged(16, 100), plain.paged(700, 2), plain.paged(1, 1400)] {
            for pool in [Pool::Buffer, Pool::Texture] {
                assert!(run(shape.pool(pool), method) == want, "{shape:?} {method:?}");
            }
        }
    }
}
