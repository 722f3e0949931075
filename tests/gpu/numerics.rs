//! Numbers at the edges: large, small, hidden, not finite. Each row says what is right in words
//! that need no reference, and every implementation, the reference included, must say the same.

mod behind;
mod biases;
mod hidden;
mod long;
pub mod means;

use wgpu_attention::{Output, Problem, Shape};

use crate::checks::{answer, each};
use crate::support::{Data, max_error};

/// Queries, keys and row length of most problems here.
const QUERIES: usize = 40;
const KEYS: usize = 70;
const DIM: usize = 8;

fn problem() -> Problem {
    Problem::new(Shape::self_attention(1, 1, QUERIES as u32, DIM as u32).kv_len(KEYS as u32))
}

fn biased() -> Problem {
    problem().bias_shape(&[QUERIES as u32, KEYS as u32])
}

/// Random operands; the bias is 0 wherever `bias` does not say otherwise.
fn data(problem: &Problem, bias: impl Fn(usize, usize) -> f32) -> Data {
    let mut data = Data::new(problem, 4);
    if let Some(all) = &mut data.bias {
        let row = |i| (0..KEYS).map(move |j| (i, j));
        *all = (0..QUERIES).flat_map(row).map(|(i, j)| bias(i, j)).collect();
    }
    data
}

/// Every q . k is `score(j)`, with scale 1.
fn with_scores(problem: &Problem, score: impl Fn(usize) -> f32) -> Data {
    let mut data = data(problem, |_, _| 0.0);
    data.q = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0].repeat(QUERIES);
    data.k = (0..KEYS).flat_map(|j| [score(j), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).collect();
    data
}

/// The mean of the values of some keys.
fn mean(v: &[f32], keys: impl Iterator<Item = usize> + Clone) -> Vec<f32> {
    let n = keys.clone().count() as f64;
    let sum = |c| keys.clone().map(|j| f64::from(v[j * DIM + c])).sum::<f64>();
    (0..DIM).map(|c| (sum(c) / n) as f32).collect()
}

/// All rows of O are this one.
fn assert_rows(name: &str, output: &Output, want: &[f32]) {
    for (i, o) in output.o.chunks(DIM).enumerate() {
        let error = max_error(o, want);
        assert!(error < 1.5e-6, "{name}, row {i}: {o:?}, not {want:?}");
    }
}

/// Equal to the reference within tolerance, and without NaN.
fn assert_right(label: &str, problem: &Problem, data: &Data) {
    let (want, [o, lse, ..]) = answer(problem, data.inputs());
    assert!(want.o.iter().all(|x| x.is_finite()), "{label}");
    each(problem, data.inputs(), |name, output| {
        let error = max_error(&output.o, &want.o);
        assert!(error <= o, "{label}, {name}: {error}, allowed {o}");
        let error = max_error(output.lse.as_ref().unwrap(), want.lse.as_ref().unwrap());
        assert!(error <= lse, "{label}, {name}, LSE: {error}, allowed {lse}");
    });
}

/// Scores so far apart that one key takes all.
#[test]
fn the_largest_score_takes_all() {
    let n = KEYS - 1;
    let at = |j: usize| j as f32 / n as f32;
    let rising = |most: f32| move |j| most * (2.0 * at(j) - 1.0);
    let up = [1e4, 1e30, 3e38].map(|most| with_scores(&problem(), rising(most)));
    let down = [-1e4, -1e30, -3e38].map(|most| with_scores(&problem(), rising(most)));
    let peak = with_scores(&problem(), |j| if j == 33 { -1e4 } else { -3e38 });
    let cases = up.iter().map(|x| (n, x)).chain(down.iter().map(|x| (0, x))).chain([(33, &peak)]);
    for (key, data) in cases {
        each(&problem().scale(1.0), data.inputs(), |name, output| {
            assert_rows(name, output, &data.v[key * DIM..][..DIM]);
        });
    }
    // Rising within a tile, falling from tile to tile, and the other way round.
    for sign in [1.0, -1.0] {
        let saw = with_scores(&problem(), |j| sign * ((j % 32) as f32 * 300.0 - j as f32 * 100.0));
        assert_right("saw", &problem().scale(1.0), &saw);
        assert_right("saw, flat", &problem().scale(3e-4), &saw);
    }
}

/// Scores that are all the same weigh all keys the same, however large they are.
#[test]
fn equal_scores_take_the_mean() {
    let least = f32::MIN_POSITIVE;
    for score in [0.0, -0.0, 1.0, 1e4, -1e4, 3e38, -3e38, f32::MIN, f32::MAX, least, 1e-40, -1e-40]
    {
        let data = with_scores(&problem(), |_| score);
        let want = mean(&data.v, 0..KEYS);
        each(&problem().scale(1.0), data.inputs(), |name, output| {
            assert_rows(&format!("{name}, score {score}"), output, &want);
        });
    }
    // Scale 0 makes every score 0; so does a softcap that is far below all differences.
    for (label, problem) in [
        ("scale 0", problem().scale(0.0)),
        ("scale -0", problem().scale(-0.0)),
        ("softcap 1e-30", problem().softcap(1e-30)),
        ("smallest softcap", problem().softcap(least)),
    ] {
        let data = data(&problem, |_, _| 0.0);
        let want = mean(&data.v, 0..KEYS);
        each(&problem, data.inputs(), |name, output| {
            assert_rows(&format!("{name}, {label}"), output, &want);
        });
    }
}

#[test]
fn zeros_and_subnormals_are_numbers() {
    let all = |x: f32| {
        let mut data = data(&problem(), |_, _| 0.0);
        (data.q, data.k) = (vec![x; QUERIES * DIM], vec![x; KEYS * DIM]);
        data.v = vec![x; KEYS * DIM];
        data
    };
    for x in [0.0, -0.0, 1e-40, -1e-45, f32::MIN_POSITIVE] {
        each(&problem(), all(x).inputs(), |name, output| {
            let least = f32::MIN_POSITIVE;
            assert!(output.o.iter().all(|o| (o - x).abs() <= least), "{name}, {x}");
            let lse = output.lse.as_ref().unwrap().iter();
            assert!(lse.copied().all(|lse| (lse - 70f32.ln()).abs() < 7e-6), "{name}, {x}");
        });
    }
}

/// A bias of any finite size is a number; with it, a score is clamped to +-3.4e38.
#[test]
fn huge_biases_are_numbers() {
    // The bias of key j in row i, the largest score, and the keys that have it.
    type Row = (&'static str, fn(usize) -> f32, f32, fn(usize) -> bool);
    let rows: [Row; 8] = [
        ("all f32::MIN", |_| f32::MIN, -3.4e38, |_| true),
        ("all -3e38", |_| -3e38, -3e38, |_| true),
        ("all f32::MAX", |_| f32::MAX, 3.4e38, |_| true),
        ("all -1e9", |_| -1e9, -1e9, |_| true),
        ("-1e9 for most", |j| if j % 8 == 3 { 0.0 } else { -1e9 }, 0.0, |j| j % 8 == 3),
        ("f32::MIN for most", |j| if j > 66 { 0.0 } else { f32::MIN }, 0.0, |j| j > 66),
        ("3e38 for one", |j| if j == 44 { 3e38 } else { 1.0 }, 3e38, |j| j == 44),
        ("3e38 and -3e38", |j| if j < 2 { 3e38 } else { -3e38 }, 3e38, |j| j < 2),
    ];
    let data = data(&biased(), |i, j| rows[i % 8].1(j));
    for (scale, scores) in [(0.0, "no scores"), (0.3, "ordinary scores")] {
        each(&biased().scale(scale), data.inputs(), |name, output| {
            for (i, o) in output.o.chunks(DIM).enumerate() {
                let (label, _, most, has) = rows[i % 8];
                // Scores vanish beside -1e9 in f32 but not in f64, and nowhere beside 0.
                if scale != 0.0 && (most == 0.0 || (most == -1e9 && name == "cpu")) {
                    continue;
                }
                let keys = (0..KEYS).filter(|&j| has(j));
                let lse = output.lse.as_ref().unwrap()[i];
                let want = most + (keys.clone().count() as f32).ln();
                let error = max_error(o, &mean(&data.v, keys));
                assert!(error < 1.5e-6, "{name}, {scores}, {label}, row {i}: {error}");
                let error = (lse - want).abs();
                assert!(error <= 1e-6 * want.abs(), "{name}, {scores}, {label}, row {i}: {lse}");
            }
        });
    }
}

/// tanh saturates instead of overflowing (gpuweb#4458, tract#2846): scores of +-1e4, capped.
#[test]
fn softcap_saturates() {
    for cap in [20.0, 50.0, 1.0, 1e-30, 1e6, 1e30] {
        // 14 keys at +s, 56 at -s.
        let is_up = |j: usize| j.is_multiple_of(5);
        let data = with_scores(&problem(), |j| if is_up(j) { 1e4 } else { -1e4 });
        let s = f64::from(cap) * (1e4 / f64::from(cap)).min(15.0).tanh();
        let sum = 14.0 + 56.0 * (-2.0 * s).exp();
        let up = mean(&data.v, (0..KEYS).filter(|&j| is_up(j)));
        let down = mean(&data.v, (0..KEYS).filter(|&j| !is_up(j)));
        let p = (14.0 / sum) as f32;
        let o: Vec<_> = up.iter().zip(down).map(|(up, down)| p * up + (1.0 - p) * down).collect();
        each(&problem().scale(1.0).softcap(cap), data.inputs(), |name, output| {
            let name = format!("{name}, softcap {cap}");
            assert_rows(&name, output, &o);
            let (lse, want) = (output.lse.as_ref().unwrap()[0], s + sum.ln());
            let error = (f64::from(lse) - want).abs();
            assert!(error <= 2e-6 * want.abs(), "{name}: LSE {lse}, not {want}");
        });
    }
}

/// A softcap near the largest number, and scores on both sides of it: nothing overflows.
#[test]
fn huge_softcaps_are_numbers() {
    for cap in [1e36, 1e37, 1e38, f32::MAX] {
        // One key far above the others; the others negative; all the same.
        type Row = (&'static str, fn(usize) -> f32, Option<usize>);
        let rows: [Row; 4] = [
            ("one large", |j| if j == 44 { 1e38 } else { 1e36 * (j % 5) as f32 }, Some(44)),
            ("rising", |j| 1e36 * ((j + 1) as f32 / 70.0), Some(KEYS - 1)),
            ("all but one negative", |j| if j == 3 { 1e36 } else { -1e38 }, Some(3)),
            ("the same", |_| 1e38, None),
        ];
        for (label, score, winner) in rows {
            let data = with_scores(&problem(), score);
            let s = f64::from(score(winner.unwrap_or(0)));
            let s = f64::from(cap) * (s / f64::from(cap)).min(15.0).tanh();
            let o = match winner {
                Some(key) => data.v[key * DIM..][..DIM].to_vec(),
                None => mean(&data.v, 0..KEYS),
            };
            each(&problem().scale(1.0).softcap(cap), data.inputs(), |name, output| {
                let name = format!("{name}, softcap {cap:e}, {label}");
                assert_rows(&name, output, &o);
                let lse = f64::from(output.lse.as_ref().unwrap()[0]);
                assert!((lse - s).abs() <= 2e-6 * s.abs(), "{name}: LSE {lse:e}, not {s:e}");
            });
        }
    }
}

/// A score and a bias that are numbers, their sum past the largest one: kept finite, so that its
/// row is too.
#[test]
fn sums_past_the_largest_number_are_finite() {
    let one = |j: usize| if j == 44 { 2.3e38 } else { 0.0 };
    let data = with_scores(&biased(), |_| 2e38);
    for sign in [1.0f32, -1.0] {
        let problem = biased().scale(sign);
        let all = vec![sign * 2.3e38; QUERIES * KEYS];
        let some: Vec<f32> = (0..QUERIES * KEYS).map(|at| one(at % KEYS)).collect();
        let winner = data.v[44 * DIM..][..DIM].to_vec();
        let rows = [("all", all, mean(&data.v, 0..KEYS)), ("one", some, winner)];
        for (label, bias, want) in rows {
            let inputs = wgpu_attention::Inputs::new(&data.q, &data.k, &data.v).bias(&bias);
            each(&problem, inputs, |name, output| {
                let label = format!("{name}, {label}, {sign}");
                assert_rows(&label, output, &want);
                let lse = output.lse.as_ref().unwrap();
                assert!(lse.iter().all(|x| x.is_finite()), "{label}: {lse:?}");
            });
        }
    }
}
