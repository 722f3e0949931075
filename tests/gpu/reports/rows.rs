//! The reports that are one call each: the smallest known input that went wrong.

use wgpu_attention::Element::{Bf16, F16, F32};
use wgpu_attention::{Align, Problem};

use super::{HIDE, of};
use crate::support::Data;
use wgpu_attention_support::cases::{Case, case};

/// A case, how its random operands become the trigger, and which rows must be exactly 0.
pub struct Report {
    pub case: Case,
    pub trigger: fn(&mut Data),
    pub hidden: fn(usize) -> bool,
}

fn report(case: Case) -> Report {
    Report { case, trigger: |_| {}, hidden: |_| false }
}

pub fn all() -> Vec<Report> {
    let mut all = masks();
    all.extend(numbers());
    let long = |align| of([1, 1, 1, 2048, 1024, 8, 8]).causal().align(align);
    all.push(Report {
        hidden: |i| i < 1024,
        ..report(case("flash-attention#1778, bottom-right", long(Align::BottomRight)))
    });
    all.push(report(case("flash-attention#1778, top-left", long(Align::TopLeft))));
    all.extend(sizes().map(report));
    all
}

fn square(tokens: u32) -> Problem {
    of([1, 1, 1, tokens, tokens, 8, 8])
}

/// Sets a bias whose rows hold `kv_len` keys to -inf for some (query, key), to 0 for the others.
fn hide(data: &mut Data, kv_len: usize, hidden: impl Fn(usize, usize) -> bool) {
    for (at, bias) in data.bias.as_mut().expect("a bias").iter_mut().enumerate() {
        *bias = if hidden(at / kv_len, at % kv_len) { HIDE } else { 0.0 };
    }
}

/// Rows, keys and tiles that a mask or a bias excludes.
fn masks() -> Vec<Report> {
    let biased = |name, problem: Problem| {
        let shape = [problem.shape().q_len, problem.shape().kv_len];
        report(case(name, problem.bias_shape(&shape)))
    };
    let tiles = || of([1, 1, 1, 20, 200, 8, 8]);
    vec![
        Report {
            hidden: |i| i >= 4,
            ..report(case("pytorch#103963", square(8)).masked(&[8, 8], |i, _| i < 4))
        },
        Report {
            hidden: |i| i == 1,
            ..report(
                case("mlx#2395", of([1, 1, 1, 4, 4, 2, 2]).scale(1.0))
                    .masked(&[1, 1, 4, 4], |i, _| i != 1),
            )
        },
        Report {
            trigger: |data| data.bias.as_mut().expect("a bias")[..20].fill(f32::MIN),
            ..biased("pytorch#109517", square(20))
        },
        Report {
            hidden: |i| i < 5,
            ..report(case("burn#4697", square(20).causal()).masked(&[20, 20], |_, j| j >= 5))
        },
        Report {
            trigger: |data| hide(data, 20, |i, j| (i + j) % 3 == 0),
            ..biased("onnx#7865", square(20).softcap(2.0))
        },
        report(
            case("onnx#7867", square(20).softcap(2.0)).masked(&[20, 20], |i, j| (i + j) % 3 != 0),
        ),
        Report {
            trigger: |data| hide(data, 200, |_, j| j < 70 || j == 100),
            ..biased("llama.cpp#12776", tiles())
        },
        report(
            case("llama.cpp#12776, mask", tiles()).masked(&[20, 200], |_, j| j >= 70 && j != 100),
        ),
        Report {
            trigger: |data| hide(data, 40, |_, j| j >= 30),
            ..biased("flash-attention#1461, scale 0", square(40).scale(0.0))
        },
        Report {
            trigger: |data| hide(data, 40, |_, j| j >= 30),
            ..biased("flash-attention#1461, scale -1", square(40).scale(-1.0))
        },
        report(case("tt-metal#54833, 16", square(16)).masked(&[16, 16], |i, j| j <= i)),
        report(case("tt-metal#54833, 40", square(40)).masked(&[40, 40], |i, j| j <= i)),
        report(case("onnxruntime#26766", of([2, 4, 4, 20, 20, 8, 8]).bias_shape(&[2, 1, 20, 20]))),
        report(case("onnxruntime#26769", of([2, 4, 4, 20, 20, 8, 8]).bias_shape(&[1, 4, 20, 20]))),
        report(
            case("pytorch#153799, forward", of([1, 1, 1, 1025, 1025, 64, 64]).causal())
                .masked(&[1025, 1025], |i, j| i / 128 % 3 != 1 || j / 128 != 2)
                .stored_as(Bf16, Bf16),
        ),
        report(
            case("candle#3388", of([1, 4, 1, 98, 1748, 128, 128]))
                .masked(&[98, 1748], |i, j| j <= i + 1650)
                .stored_as(F16, F16),
        ),
    ]
}

/// Scores that 16 bits do not hold, or only roughly.
fn numbers() -> Vec<Report> {
    // Beyond 65504, the largest f16.
    fn large(data: &mut Data) {
        data.q.iter_mut().chain(&mut data.k).for_each(|x| *x *= 200.0);
    }
    let half = |name, problem: Problem| report(case(name, problem).stored_as(F16, F16));
    vec![
        Report { trigger: large, ..half("llama.cpp#18969", of([1, 2, 2, 20, 90, 8, 8])) },
        Report {
            trigger: large,
            ..half("tract#2846, f16", of([1, 2, 2, 20, 90, 8, 8]).softcap(20.0))
        },
        half("onnxruntime#28195", of([1, 8, 8, 6, 6, 512, 512]).scale(1.0).causal()),
        report(case("llama.cpp#28124", of([1, 16, 1, 17, 40, 320, 256])).stored_as(F32, F16)),
    ]
}

/// Lengths, alignments and sequences.
fn sizes() -> impl Iterator<Item = Case> {
    let cross = |align| of([4, 12, 12, 32, 1024, 64, 64]).causal().align(align);
    [
        case("mlx#2835, bottom-right", cross(Align::BottomRight)).stored_as(F16, F16),
        case("mlx#2835, top-left", cross(Align::TopLeft)).stored_as(F16, F16),
        case("flash-attention#1537", of([1, 9, 3, 2, 8, 64, 64]))
            .packed(&[0, 0, 1, 1, 2], &[0, 0, 3, 3, 8]),
        // An eighth of the reported lengths.
        case("flash-attention#2562, forward", of([1, 1, 1, 256, 1024, 256, 256]))
            .packed(&[0, 0, 151, 256, 256], &[0, 317, 535, 640, 1024]),
        case("executorch#20583", square(362)),
        case("pytorch#159247", of([1, 2, 2, 33, 97, 8, 8])),
        case("tinygrad#18009", of([1, 1, 1, 1, 20_000, 8, 8])),
    ]
    .into_iter()
}
