//! Caches that grow on the device, against their twin on the CPU.

mod both;
mod buffers;
pub mod device_lengths;
mod edges;
mod errors;
pub mod means;
mod sharing;
mod steps;

use both::{Both, Setup};
use wgpu_attention::{CacheShape, Choice, Element, Error, Method, Pairing, Plan, Pool, Rotary};

use crate::program::Program;

/// Sequences of unequal lengths grow by unequal steps, in every storage type and place.
#[test]
fn every_type_in_every_place() {
    types_and_places(4);
}

/// One in so many of all combinations.
pub fn types_and_places(step: usize) {
    let program = Program::shared();
    let plain = CacheShape::new(3, 2, 40, 10).value_dim(7);
    let elements =
        [(Element::F32, 1e-6), (Element::F16, 1e-6), (Element::Bf16, 1e-6), (Element::Int8, 0.04)];
    for (place, pool) in [Pool::Buffer, Pool::Texture].into_iter().enumerate() {
        for (bits, (element, odd)) in elements.into_iter().enumerate() {
            let shapes = [plain, plain.paged(8, 11), plain.paged(3, 40)];
            for (pages, shape) in shapes.into_iter().enumerate() {
                let shape = shape.element(element).pool(pool);
                let rotations = [None, Some(Rotary::new(4, 64, Pairing::Halves))];
                let first = (place + bits + 2 * pages) % step;
                for rotary in rotations.into_iter().skip(first).step_by(step) {
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
        for shape in [plain.paged(16, 100), plain.paged(700, 2)] {
            for pool in [Pool::Buffer, Pool::Texture] {
                assert!(run(shape.pool(pool), method) == want, "{shape:?} {method:?}");
            }
        }
    }
}

/// `broadcast` over rows of every type, in one piece and in pages.
#[test]
fn broadcast_over_every_type() {
    let program = Program::with_subgroups();
    let plain = CacheShape::new(2, 2, 40, 10).value_dim(7);
    for (element, most) in
        [(Element::F32, 4e-6), (Element::F16, 4e-6), (Element::Bf16, 4e-6), (Element::Int8, 0.02)]
    {
        for (shape, pool) in [(plain, Pool::Texture), (plain.paged(3, 40), Pool::Buffer)] {
            let setup = Setup::new(shape.element(element).pool(pool), 6, 5);
            let plan = program.attention.plan_with(&setup.problem(), BROADCAST);
            let Some(plan) = possible(program, plan) else { continue };
            let mut both = Both::with_plan(program, &program.attention, &setup, &plan);
            for counts in [[5, 1], [1, 0], [5, 5]] {
                both.step(&counts).expect("room");
                let [o, lse] = both.errors();
                assert!(o <= most && lse <= most, "{shape:?} {element:?}: {o:e}, {lse:e}");
            }
        }
    }
}

/// A value that is not finite gives its row of bytes an infinite scale: queries before it do not see
/// that either.
#[test]
fn hidden_scales_do_not_leak() {
    let program = Program::with_subgroups();
    let (tokens, bad_token, dim) = (9, 5, 8);
    let shape = CacheShape::new(1, 1, tokens as u32, dim as u32).element(Element::Int8);
    let setup = Setup::new(shape, 2, tokens as u32);
    for choice in [Choice::method(Method::Flash), Choice::method(Method::Decode), BROADCAST] {
        let plan = program.attention.plan_with(&setup.problem(), choice);
        let Some(plan) = possible(program, plan) else { continue };
        let [fine, bad] = [1.0, f32::INFINITY].map(|x| {
            let mut both = Both::with_plan(program, &program.attention, &setup, &plan);
            both.cache.extend(&program.queue, &[tokens as u32]).expect("room");
            let mut new = both.fresh();
            new[2][bad_token * dim + 3] = x;
            for (buffer, row) in both.new.iter().zip(&new) {
                program.queue.write_buffer(buffer, 0, bytemuck::cast_slice(row));
            }
            program.submit(|encoder| both.record(encoder));
            both.output()
        });
        // [head, token, dim]
        for (at, (fine, bad)) in fine.chunks(dim).zip(bad.chunks(dim)).enumerate() {
            let (token, finite) = (at % tokens, bad.iter().all(|x| x.is_finite()));
            let right = if token < bad_token { fine == bad } else { !finite };
            assert!(right, "{choice}, token {token}: {fine:?}, {bad:?}");
        }
    }
}

const BROADCAST: Choice = Choice::method(Method::Broadcast);

/// The plan, unless the device is without subgroups of one size: then the error says that.
fn possible(program: &Program, plan: Result<Plan, Error>) -> Option<Plan> {
    let info = program.device.adapter_info();
    let one_size = info.subgroup_min_size == info.subgroup_max_size;
    match plan {
        Err(Error::Limit { what, .. }) => {
            let has = program.device.features().contains(wgpu::Features::SUBGROUP) && one_size;
            assert!(!has && what.starts_with("subgroups of one size"), "{what}");
            println!("left out: {} lacks {what}", info.name);
            None
        }
        plan => Some(plan.expect("a plan")),
    }
}
