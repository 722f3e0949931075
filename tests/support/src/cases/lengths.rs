//! Lengths for each batch entry: none, one, all there is room for. Rows past them hold NaN.

use wgpu_attention::{Align, Band, Problem};

use super::{Case, case, shape};

const QUERIES: [u32; 5] = [21, 0, 1, 5, 20];
const KEYS: [u32; 5] = [0, 1, 75, 33, 64];

fn base() -> Problem {
    Problem::new(shape([5, 4, 2, 21, 75, 8, 8]))
}

fn lens(name: &str, problem: Problem) -> Case {
    case(format!("lens, {name}"), problem).q_lens(&QUERIES).kv_lens(&KEYS).poisoned()
}

pub fn all() -> Vec<Case> {
    let keys = |name: &str, problem: Problem, keys: &[u32]| {
        case(format!("kv_lens, {name}"), problem).kv_lens(keys).poisoned()
    };
    let queries = |name: &str, problem: Problem, queries: &[u32]| {
        case(format!("q_lens, {name}"), problem).q_lens(queries).poisoned()
    };
    let long = || Problem::new(shape([4, 2, 1, 40, 140, 8, 8]));
    let odd = || Problem::new(shape([5, 6, 3, 21, 75, 6, 10]));
    let causal = |align| base().causal().align(align);
    let band = Band { left: Some(9), right: Some(4) };
    let left = Band { left: Some(12), right: None };
    let mut all = vec![
        lens("open", base()),
        keys("open", base(), &KEYS),
        keys("none", base(), &[0; 5]),
        keys("one", base(), &[1; 5]),
        keys("all", base(), &[75; 5]),
        keys("at tile edges", long(), &[31, 32, 33, 96]),
        keys("past tile edges", long(), &[63, 64, 65, 129]),
        keys("one query", Problem::new(shape([4, 4, 1, 1, 140, 8, 8])), &[0, 1, 100, 140]),
        queries("open", base(), &QUERIES),
        queries("none", base(), &[0; 5]),
        queries("at tile edges", long(), &[32, 31, 33, 4]),
        keys("causal", causal(Align::BottomRight), &KEYS),
        queries("causal", causal(Align::BottomRight), &QUERIES),
        case("kv_lens without keys", Problem::new(shape([2, 2, 1, 21, 0, 8, 8]))).kv_lens(&[0, 0]),
        case("lens of no batch", Problem::new(shape([0, 2, 1, 5, 7, 8, 8])))
            .q_lens(&[])
            .kv_lens(&[]),
    ];
    let aligns = [Align::TopLeft, Align::BottomRight, Align::Shift(7), Align::Shift(-7)];
    all.extend(aligns.map(|align| lens(&format!("causal, {align:?}"), causal(align))));
    all.extend(
        aligns.map(|align| lens(&format!("band, {align:?}"), base().band(band).align(align))),
    );
    all.extend([
        lens("left, bottom-right", base().band(left).align(Align::BottomRight)),
        lens("causal, shift i32::MIN", causal(Align::Shift(i32::MIN))),
        lens("causal, shift i32::MAX", causal(Align::Shift(i32::MAX))),
        lens("mask", base()).masked(&[21, 75], |i, j| (i + j) % 3 != 0),
        lens("mask per batch entry", base()).masked(&[5, 1, 1, 75], |row, j| (row + j) % 2 == 0),
        Case { excluded: 4, ..lens("bias", base().bias_shape(&[5, 1, 21, 75])) },
        Case {
            excluded: 7,
            ..lens("bias, causal", causal(Align::BottomRight).bias_shape(&[4, 21, 75]))
        },
        Case {
            excluded: 3,
            ..lens("bias, mask, band", {
                odd().band(band).align(Align::BottomRight).bias_shape(&[21, 75])
            })
        }
        .masked(&[6, 1, 75], |h, j| (h + j) % 5 != 0),
        lens("softcap", base().softcap(1.5)),
        lens("sinks", base()).sinks(&[1.0, -2.0, 0.0, 5.0]),
    ]);
    all.extend(aligns.map(|align| {
        lens(&format!("ALiBi, {align:?}"), base().align(align)).alibi(&[0.5, 0.125, -0.25, 0.0])
    }));
    all
}
