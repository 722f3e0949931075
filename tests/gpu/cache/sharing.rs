//! Sequences that share pages, grow apart, are cut and freed: none disturbs another.

use rand::{Rng, SeedableRng, rngs::StdRng};
use wgpu_attention::{CacheShape, Element, Error, Pairing, Pool, Rotary};

use super::both::{Both, Setup};
use crate::program::Program;

/// What rows and outputs may be off by: a byte may round the other way.
fn tolerance(element: Element) -> [f32; 2] {
    if element == Element::Int8 { [0.04, 0.03] } else { [1e-6, 4e-6] }
}

fn check(both: &Both<'_>, name: &str) {
    let [most_rows, most] = tolerance(both.cache.shape().element);
    let (rows, lens) = both.rows_error(&both.program.attention);
    assert_eq!(lens, both.twin.lens(), "{name}");
    let [o, lse] = both.errors();
    assert!(rows <= most_rows, "{name}: rows off by {rows}");
    assert!(o <= most && lse <= most, "{name}: {o:e} {lse:e}");
    both.conserved();
}

/// In both pools, as f32 and as bytes, with rotated keys.
fn each(shape: CacheShape, tokens: u32, mut test: impl FnMut(&mut Both<'_>, &str)) {
    let program = Program::shared();
    for pool in [Pool::Buffer, Pool::Texture] {
        for element in [Element::F32, Element::Int8] {
            let shape = shape.element(element).pool(pool);
            let rotary = Some(Rotary::new(2, shape.capacity, Pairing::Adjacent));
            let setup = Setup { rotary, ..Setup::new(shape, 4, tokens) };
            let mut both = Both::new(program, &program.attention, &setup);
            test(&mut both, &format!("{pool:?} {element:?}"));
        }
    }
}

/// Whole pages, and a page that ends in the middle of what is shared; all grow at once.
#[test]
fn a_prefix_is_shared() {
    each(CacheShape::new(4, 2, 40, 6).value_dim(9).paged(4, 24), 6, |both, name| {
        both.step(&[6, 0, 0, 0]).expect("room");
        both.step(&[4, 0, 0, 0]).expect("room");
        both.share(0, 1, 8).expect("whole pages");
        both.share(0, 2, 10).expect("half a page");
        both.share(0, 3, 5).expect("a quarter of a page");
        assert_eq!(both.cache.free_pages(), 21, "{name}: three pages for all");
        for counts in [[1, 1, 1, 1], [0, 0, 0, 0], [6, 0, 2, 5], [2, 6, 1, 0]] {
            both.step(&counts).expect("room");
            check(both, name);
        }
        assert_eq!(
            both.cache.pages(1).expect("pages")[..2],
            both.cache.pages(2).expect("pages")[..2]
        );
    });
}

/// A sequence that is cut into a shared page and grows again writes into a page of its own.
#[test]
fn cut_into_a_shared_page() {
    each(CacheShape::new(3, 1, 20, 4).paged(4, 12), 4, |both, name| {
        for _ in 0..3 {
            both.step(&[3, 0, 0]).expect("room");
        }
        both.share(0, 1, 9).expect("shared");
        both.share(1, 2, 7).expect("shared with a third");
        for (sequence, len) in [(0, 5), (1, 6), (2, 1)] {
            both.set_len(sequence, len).expect("shorter");
            let mut counts = [0; 3];
            counts[sequence as usize] = 3;
            both.step(&counts).expect("room");
            check(both, name);
        }
    });
}

/// Freed pages are used again, and their old rows are seen by nobody.
#[test]
fn freed_pages_are_used_again() {
    each(CacheShape::new(3, 2, 12, 5).paged(5, 4), 7, |both, name| {
        both.step(&[7, 7, 0]).expect("room");
        assert_eq!(both.cache.free_pages(), 0, "{name}");
        let full = Error::Full { what: "pages", need: 1, got: 0 };
        assert_eq!(both.step(&[0, 0, 1]), Err(full), "{name}");
        check(both, name);
        both.set_len(0, 0).expect("freed");
        assert_eq!(both.cache.free_pages(), 2, "{name}");
        both.step(&[0, 1, 6]).expect("room again");
        check(both, name);
        both.set_len(1, 2).expect("shorter");
        both.step(&[3, 0, 0]).expect("room again");
        check(both, name);
    });
}

/// Tables of the caller's own: pages in another order, and a fork with spare pages of the origin's
/// that it must not write to.
#[test]
fn tables_of_the_callers_own() {
    each(CacheShape::new(2, 2, 16, 4).paged(4, 9), 6, |both, name| {
        let queue = &both.program.queue;
        both.cache.set_pages(queue, 0, &[7, 2, 5], 0).expect("free pages");
        both.step(&[6, 0]).expect("room");
        both.step(&[5, 0]).expect("room");
        assert_eq!(both.cache.pages(0), Ok(&[7, 2, 5][..]), "{name}");
        check(both, name);
        both.cache.set_pages(queue, 1, &[7, 2, 5], 6).expect("shared pages");
        both.twin.share(0, 1, 6).expect("an empty sequence");
        both.step(&[0, 5]).expect("room");
        check(both, name);
        assert_eq!(both.cache.pages(1).expect("pages")[0], 7, "{name}");
        both.step(&[1, 1]).expect("room");
        check(both, name);
    });
}

/// 200 changes by chance; the refused ones change nothing.
#[test]
fn random_walk() {
    let program = Program::shared();
    let plain = CacheShape::new(4, 2, 14, 6).value_dim(3);
    for (seed, shape) in [
        (1, plain.paged(4, 11)),
        (2, plain.paged(3, 13).pool(Pool::Texture).element(Element::F16)),
        (3, plain.paged(5, 8).element(Element::Int8)),
    ] {
        let setup = Setup::new(shape, 2, 3);
        let mut both = Both::new(program, &program.attention, &setup);
        let mut random = StdRng::seed_from_u64(seed);
        let mut refused = 0;
        for at in 0..200 {
            let [a, b] = [0, 0].map(|_: u32| random.random_range(0..4u32));
            let len = both.cache.len(a).expect("a sequence");
            let counts = [0; 4].map(|_: u32| random.random_range(0..3u32));
            let result = match random.random_range(0..7) {
                0..4 => both.step(&counts),
                4 => both.set_len(a, random.random_range(0..=len)),
                5 => both.set_len(a, 0),
                _ if a == b => Ok(()),
                _ => both.share(a, b, random.random_range(0..=len)),
            };
            refused += u32::from(result.is_err());
            both.conserved();
            if at % 8 == 7 {
                // Outputs are of the last step: take one of no tokens.
                both.step(&[0; 4]).expect("room for nothing");
                check(&both, &format!("{shape:?}, operation {at}"));
            }
        }
        assert!(refused > 10 && refused < 120, "{refused} refused");
    }
}
