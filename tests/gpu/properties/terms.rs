//! Masks, slopes and sinks in other words: a bias, a bias, a key.

use wgpu_attention::{Align, Band, Inputs, Problem, Shape};

use super::both;
use crate::checks::{Checked, answer};
use crate::support::{Data, max_error};
use wgpu_attention_support::cases::case;

const Q_LEN: usize = 40;
const KV_LEN: usize = 90;

fn problem() -> Problem {
    Problem::new(Shape::self_attention(1, 2, Q_LEN as u32, 8).kv_len(KV_LEN as u32))
}

/// A mask is a bias of 0 and -inf, bit for bit.
#[test]
fn a_mask_is_a_bias() {
    type May = fn(usize, usize) -> bool;
    let masks: [(&str, May); 4] = [
        ("some", |i, j| (7 * i + 5 * j) % 3 != 0),
        ("rows", |i, _| i % 3 != 0),
        ("tiles", |i, j| (i + j / 32) % 2 == 0),
        ("first tiles", |_, j| j > 70),
    ];
    let band = Band { left: Some(20), right: Some(9) };
    for options in [problem(), problem().band(band).align(Align::BottomRight)] {
        for (name, may) in masks {
            let masked = Checked::new(
                case("masked", options.clone()).masked(&[Q_LEN as u32, KV_LEN as u32], may),
            );
            let bias: Vec<f32> = (0..Q_LEN * KV_LEN)
                .map(|at| if may(at / KV_LEN, at % KV_LEN) { 0.0 } else { f32::NEG_INFINITY })
                .collect();
            let biased = options.clone().bias_shape(&[Q_LEN as u32, KV_LEN as u32]);
            let x = &masked.data;
            let inputs = [x.inputs(), Inputs::new(&x.q, &x.k, &x.v).bias(&bias)];
            both([&masked.case.problem, &biased], inputs, |kernel, a, b| {
                assert_eq!(a, b, "{name}, {kernel}");
            });
        }
    }
}

/// ALiBi is a bias of -slope * |i + shift - j|.
#[test]
fn alibi_is_a_bias() {
    let slopes = [0.5, -0.125];
    for (align, shift) in [
        (Align::TopLeft, 0),
        (Align::BottomRight, 50),
        (Align::Shift(-9), -9),
        (Align::Shift(77), 77),
    ] {
        for options in [problem().align(align), problem().causal().align(align).softcap(2.0)] {
            let alibi = Checked::new(case("ALiBi", options.clone()).alibi(&slopes));
            let at = |at: usize| {
                let (head, i, j) = (at / KV_LEN / Q_LEN, at / KV_LEN % Q_LEN, at % KV_LEN);
                -slopes[head] * (i as f32 + shift as f32 - j as f32).abs()
            };
            let bias: Vec<f32> = (0..2 * Q_LEN * KV_LEN).map(at).collect();
            let biased = options.bias_shape(&[2, Q_LEN as u32, KV_LEN as u32]);
            let x = &alibi.data;
            let inputs = [x.inputs(), Inputs::new(&x.q, &x.k, &x.v).bias(&bias)];
            let [o, lse, ..] = alibi.tolerance;
            both([&alibi.case.problem, &biased], inputs, |kernel, a, b| {
                let error = max_error(&a.o, &b.o) / o;
                assert!(error <= 2.0, "{align:?}, {kernel}: {error}");
                let [a, b] = [a, b].map(|output| output.lse.as_ref().expect("wanted"));
                let error = max_error(a, b) / lse;
                assert!(error <= 2.0, "{align:?}, {kernel}: LSE {error}");
            });
        }
    }
}

/// A sink is one more key that has this score and the value 0, which the LSE does not count.
#[test]
fn a_sink_is_a_key() {
    const MORE: usize = KV_LEN + 1;
    let more = |x: &[f32]| -> Vec<f32> {
        x.chunks(KV_LEN * 8).flat_map(|head| [head, &[0.0; 8]].concat()).collect()
    };
    for sinks in [[0.0, 1.5], [-4.0, 30.0], [f32::NEG_INFINITY, -300.0]] {
        for softcap in [0.0, 2.0] {
            let with = Checked::new(case("sinks", problem().softcap(softcap)).sinks(&sinks));
            let x = &with.data;
            let (k, v) = (more(&x.k), more(&x.v));
            let last = |at: usize| if at % MORE == KV_LEN { sinks[at / MORE] } else { 0.0 };
            let bias: Vec<f32> = (0..2 * MORE).map(last).collect();
            let longer = Shape { kv_len: MORE as u32, ..problem().shape() };
            let longer = Problem::new(longer).softcap(softcap).bias_shape(&[2, 1, MORE as u32]);
            let inputs = [x.inputs(), Inputs::new(&x.q, &k, &v).bias(&bias)];
            let [o, lse, ..] = answer(&longer, inputs[1]).1;
            both([&with.case.problem, &longer], inputs, |kernel, a, b| {
                let error = max_error(&a.o, &b.o) / o;
                assert!(error <= 2.0, "{sinks:?}, {kernel}: {error}");
                let [a, b] = [a, b].map(|output| output.lse.as_ref().expect("wanted"));
                for (at, (a, b)) in a.iter().zip(b).enumerate() {
                    let sink = sinks[at / Q_LEN];
                    let most = a.max(sink);
                    let want = most + ((a - most).exp() + (sink - most).exp()).ln();
                    assert!((b - want).abs() <= 2.0 * lse, "{sinks:?}, {kernel}: {b}, not {want}");
                }
            });
        }
    }
}

/// No slope and no sink change nothing.
#[test]
fn nothing_added_changes_nothing() {
    let plain = problem().align(Align::TopLeft);
    let x = Data::new(&plain, 8);
    let (zeros, none) = ([0.0; 2], [f32::NEG_INFINITY; 2]);
    let [o, ..] = answer(&plain, x.inputs()).1;
    for (name, with, inputs) in [
        ("slopes", plain.clone().alibi(), x.inputs().slopes(&zeros)),
        ("sinks", plain.clone().sinks(), x.inputs().sinks(&none)),
    ] {
        both([&with, &plain], [inputs, x.inputs()], |kernel, a, b| {
            let error = max_error(&a.o, &b.o) / o;
            assert!(error <= 1.0, "{name}, {kernel}: {error}");
            assert_eq!(a.lse, b.lse, "{name}, {kernel}");
        });
    }
}
