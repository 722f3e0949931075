//! Biases and slopes of any finite size: a score past f32's range is +-3.4e38.

use wgpu_attention::{Align, Problem};

use super::{DIM, KEYS, QUERIES, biased, data, mean, problem};
use crate::kernels::{Who, every};
use crate::support::Data;
use wgpu_attention_support::cases::case;
use wgpu_attention_support::data::max_error;

const MOST: f32 = 3.4e38;

/// Every row has one LSE and the mean of the keys that `has` names. With a bias, by kernels of other sizes.
fn check(label: &str, problem: Problem, data: Data, lse: f32, has: fn(usize) -> bool) {
    let is_plain = data.bias.is_some() && problem.clone().softcap(0.0) == problem;
    let who = if is_plain { Who::Sizes } else { Who::All };
    let values = mean(&data.v, (0..KEYS).filter(|&j| has(j)));
    let lse = lse + ((0..KEYS).filter(|&j| has(j)).count() as f32).ln();
    every(case(label, problem), data, who, |name, output| {
        for (i, o) in output.o.chunks(DIM).enumerate() {
            let error = max_error(o, &values);
            assert!(error < 1.5e-6, "{label}, {name}, row {i}: {o:?}, not {values:?}");
            let got = output.lse.as_ref().expect("wanted")[i];
            let far = (f64::from(got) - f64::from(lse)).abs();
            assert!(
                far <= 1e-6 * f64::from(lse).abs(),
                "{label}, {name}, row {i}: LSE {got:e}, not {lse:e}"
            );
        }
    });
}

#[test]
fn huge_biases_are_added_as_they_are() {
    type Row = (&'static str, fn(usize) -> f32, f32, fn(usize) -> bool);
    let rows: [Row; 9] = [
        ("all f32::MIN", |_| f32::MIN, -MOST, |_| true),
        ("all f32::MAX", |_| f32::MAX, MOST, |_| true),
        ("all -3e38", |_| -3e38, -3e38, |_| true),
        ("all 2.9e38", |_| 2.9e38, 2.9e38, |_| true),
        (
            "past the range, both ways",
            |j| if j % 3 == 0 { f32::MAX } else { f32::MIN },
            MOST,
            |j| j % 3 == 0,
        ),
        ("-3e38 and -2.5e38", |j| if j > 60 { -2.5e38 } else { -3e38 }, -2.5e38, |j| j > 60),
        ("3e38 and 2.5e38", |j| if j > 60 { 2.5e38 } else { 3e38 }, 3e38, |j| j <= 60),
        ("f32::MIN and -1", |j| if j == 5 { -1.0 } else { f32::MIN }, -1.0, |j| j == 5),
        // Both are past the range.
        ("f32::MIN and -3.401e38", |j| if j < 9 { -3.401e38 } else { f32::MIN }, -MOST, |_| true),
    ];
    for (label, bias, lse, has) in rows {
        for (scale, softcap) in [(0.0, 0.0), (0.3, 0.0), (0.3, 20.0)] {
            // Ordinary scores vanish beside huge ones in f32, beside -1 they do not.
            if scale == 0.0 || lse.abs() > 1e9 {
                let problem = biased().scale(scale).softcap(softcap);
                let data = data(&problem, |_, j| bias(j));
                // In f64 ordinary scores show beside large ones, unless all are at the limit.
                if scale == 0.0 || lse.abs() == MOST && has(0) && has(1) {
                    check(
                        &format!("{label}, scale {scale}, softcap {softcap}"),
                        problem,
                        data,
                        lse,
                        has,
                    );
                }
            }
        }
    }
}

/// q . k and a bias on the same side, and on both.
#[test]
fn huge_scores_and_biases_meet() {
    for (score, bias, lse) in [
        (2e38, 2e38, MOST),
        (-2e38, -2e38, -MOST),
        (2e38, f32::MIN, 2e38 + f32::MIN),
        (-3e38, f32::MAX, -3e38 + f32::MAX),
    ] {
        let problem = biased().scale(1.0);
        let mut data = super::with_scores(&problem, |_| score);
        data.bias = Some(vec![bias; QUERIES * KEYS]);
        check(&format!("{score:e} and {bias:e}"), problem, data, lse, |_| true);
    }
}

/// Row i stands at key i + 80, past all keys: distances are 11 to 119.
#[test]
fn steep_slopes_are_numbers() {
    let steep = |problem: Problem, slope: f32| {
        let problem = problem.scale(0.0).alibi().align(Align::Shift(80));
        let mut data = Data::new(&problem, 4);
        data.given.slopes = Some(vec![slope]);
        (problem, data)
    };
    // Far past the range: all the same.
    for (slope, lse) in [(1e38, -MOST), (-1e38, MOST), (f32::MAX, -MOST), (f32::MIN, MOST)] {
        let (problem, data) = steep(problem(), slope);
        check(&format!("slope {slope:e}"), problem, data, lse, |_| true);
    }
    // With a bias on the other side that does not suffice, and with one that takes part of it back:
    // in row 0 the last key is 11 away, in the others further.
    let with_bias = |slope: f32, bias: f32| {
        let (problem, mut data) = steep(biased(), slope);
        data.bias = Some(vec![bias; QUERIES * KEYS]);
        (problem, data)
    };
    let (problem, data) = with_bias(1e38, f32::MAX);
    check("slope 1e38, bias f32::MAX", problem, data, -MOST, |_| true);
    let (problem, data) = with_bias(-1e38, f32::MIN);
    check("slope -1e38, bias f32::MIN", problem, data, MOST, |_| true);
    let (slope, bias) = (4e37f32, f32::MAX);
    let (problem, data) = with_bias(slope, bias);
    let last = data.v[(KEYS - 1) * DIM..][..DIM].to_vec();
    let case = case("slope 4e37, bias f32::MAX", problem);
    every(case, data, Who::Sizes, |name, output| {
        let want = f64::from(bias) - 11.0 * f64::from(slope);
        let lse = f64::from(output.lse.as_ref().expect("wanted")[0]);
        assert!((lse - want).abs() <= 1e-6 * f64::from(bias), "{name}: LSE {lse:e}, not {want:e}");
        assert!(max_error(&output.o[..DIM], &last) < 1.5e-6, "{name}: {:?}", &output.o[..DIM]);
    });
}
