//! Boolean masks: by shape and by strides, at the edges of words and tiles, with what else decides
//! on a key.

use wgpu_attention::{Align, Band, BiasLayout, Problem};

use super::given::May;
use super::{BROADCAST_STRIDES, BROADCASTS, Case, USUAL, case, shape, usual};

const SOME: May = |row, key| !(7 * row + 5 * key).is_multiple_of(3);

pub fn all() -> Vec<Case> {
    let mut all: Vec<_> =
        BROADCASTS.map(|s| case(format!("mask {s:?}"), usual()).masked(s, SOME)).into();
    all.push(case("mask [] of false", usual()).masked(&[], |_, _| false));
    let single = Problem::new(shape([1, 1, 1, 1, 1, 8, 8]));
    all.push(case("mask of one key", single.clone()).masked(&[1, 1], |_, _| true));
    all.push(case("mask of no key", single).masked(&[1, 1, 1, 1], |_, _| false));
    all.extend(BROADCAST_STRIDES.map(|[offset, batch, head, query, key]| {
        let at = BiasLayout { offset, batch, head, query, key };
        case(format!("mask strides {at:?}"), usual()).masked_by(at, 3)
    }));
    all.extend([31, 32, 33, 63, 64, 65, 129].map(|keys| {
        let problem = Problem::new(shape([1, 2, 2, 33, keys, 8, 8]));
        case(format!("mask of {keys} keys"), problem).masked(&[33, keys], SOME)
    }));
    all.extend(patterns());
    all.extend(together());
    all
}

/// What whole rows, words and tiles of 32 keys may hold.
fn patterns() -> Vec<Case> {
    let rows: [(&str, May); 13] = [
        ("every third row hidden", |i, _| i % 3 != 1),
        ("all but one row hidden", |i, _| i == 17),
        ("all hidden", |_, _| false),
        ("nothing hidden", |_, _| true),
        ("a tile hidden", |_, j| j / 32 != 1),
        ("the first tiles hidden", |_, j| j >= 64),
        ("the last tiles hidden", |_, j| j < 65),
        ("every other tile hidden", |_, j| j / 32 % 2 == 0),
        ("other tiles for odd rows", |i, j| (i + j / 32) % 2 == 0),
        ("the last key of each word", |_, j| j % 32 == 31),
        ("the first key of each word", |_, j| j % 32 == 0),
        ("one key a row", |i, j| j == (i * 37) % 140),
        ("tiles hidden from the first rows", |i, j| i >= 32 || j < 32),
    ];
    let of = |(name, may): (&str, May)| {
        let problem = Problem::new(shape([1, 2, 1, 40, 140, 8, 8]));
        case(format!("mask, {name}"), problem).masked(&[40, 140], may)
    };
    rows.into_iter().map(of).collect()
}

fn together() -> Vec<Case> {
    let of = |name: &str, problem: Problem| case(format!("mask and {name}"), problem);
    let [b, h, _, q, k, ..] = USUAL;
    let odd = || Problem::new(shape([2, 6, 3, 21, 75, 6, 10]));
    let band = Band { left: Some(30), right: Some(5) };
    vec![
        Case { excluded: 5, ..of("bias", usual().bias_shape(&[q, k])) }.masked(&[q, k], SOME),
        Case { excluded: 2, ..of("bias per head", usual().bias_shape(&[h, 1, k])) }
            .masked(&[b, 1, 1, k], SOME),
        of("causal, top-left", usual().causal().align(Align::TopLeft)).masked(&[q, k], SOME),
        of("causal, bottom-right", usual().causal().align(Align::BottomRight))
            .masked(&[b, 1, 1, k], |row, key| key > 10 + row),
        of("causal, shift 7", usual().causal().align(Align::Shift(7))).masked(&[h, q, k], SOME),
        of("a band", usual().band(band).align(Align::BottomRight)).masked(&[q, k], SOME),
        of("softcap", usual().softcap(2.0)).masked(&[q, k], SOME),
        of("scale 0", usual().scale(0.0)).masked(&[q, k], SOME),
        Case {
            excluded: 3,
            ..of("odd rows, bias, causal", {
                odd().bias_shape(&[6, 21, 75]).causal().align(Align::BottomRight)
            })
        }
        .masked(&[2, 6, 21, 75], SOME),
        of("ALiBi", usual().align(Align::BottomRight)).masked(&[q, k], SOME).alibi(&[0.5, 0.25]),
        of("sinks", usual()).masked(&[q, k], |i, j| i % 4 != 0 && j % 5 != 0).sinks(&[0.5, -1.0]),
    ]
}
