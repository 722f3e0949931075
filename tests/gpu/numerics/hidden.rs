//! What must not be seen is not: rows without keys, excluded keys, and whatever lies in them.

use wgpu_attention::{Align, Band, Problem, Shape};

use super::{DIM, KEYS, QUERIES, assert_right, biased, data, problem};
use crate::checks::{answer, each};
use crate::support::{Data, max_error};

const HIDE: f32 = f32::NEG_INFINITY;

/// Rows that may see no key: O = 0, LSE = -inf, weights 0, scores -inf; the others as ever.
#[test]
fn hidden_rows_are_zero() {
    let shorter = |align| {
        let shape = Shape::self_attention(1, 1, QUERIES as u32, DIM as u32).kv_len(25);
        Problem::new(shape).causal().align(align)
    };
    let shifted = |shift| problem().causal().align(Align::Shift(shift));
    let late =
        |shift| problem().band(Band { left: Some(5), right: None }).align(Align::Shift(shift));
    let clean = |problem: Problem| (data(&problem, |_, _| 0.0), problem);
    let some_rows = data(&biased(), |i, _| if i % 3 == 1 { HIDE } else { 0.0 });
    let with_band = data(&biased(), |i, j| if i < 20 && j <= i { HIDE } else { 0.5 });
    let rows = |range: std::ops::Range<usize>| range.collect::<Vec<_>>();
    for (label, (data, problem), hidden) in [
        ("bottom-right, fewer keys", clean(shorter(Align::BottomRight)), rows(0..15)),
        ("top-left, fewer keys", clean(shorter(Align::TopLeft)), vec![]),
        ("shift -7", clean(shifted(-7)), rows(0..7)),
        ("shift -40", clean(shifted(-40)), rows(0..40)),
        ("shift i32::MIN", clean(shifted(i32::MIN)), rows(0..40)),
        ("left bound, shift 60", clean(late(60)), rows(15..40)),
        ("left bound, shift i32::MAX", clean(late(i32::MAX)), rows(0..40)),
        ("bias, every third row", (some_rows, biased()), (1..40).step_by(3).collect()),
        ("band and bias", (with_band, biased().causal().align(Align::TopLeft)), rows(0..20)),
    ] {
        assert_right(label, &problem, &data);
        let keys = problem.shape().kv_len as usize;
        each(&problem, data.inputs(), |name, output| {
            for i in 0..QUERIES {
                let all = |x: &[f32], n: usize, of| x[i * n..][..n].iter().all(|&x| x == of);
                let stored = |x: &Option<Vec<f32>>, of| x.as_ref().map(|x| all(x, keys, of));
                let empty = [
                    Some(all(&output.o, DIM, 0.0)),
                    output.lse.as_ref().map(|lse| all(lse, 1, HIDE)),
                    stored(&output.weights, 0.0),
                    stored(&output.scores, HIDE),
                ];
                let right = empty.iter().flatten().all(|&empty| empty == hidden.contains(&i));
                assert!(right, "{label}, {name}, row {i}: {empty:?}");
            }
        });
    }
}

/// -inf excludes with any scale and softcap: no -inf * 0, no +inf from a negative scale.
#[test]
fn excluded_keys_have_no_weight() {
    let seen = |i: usize, j: usize| (i + j).is_multiple_of(4);
    let data = data(&biased(), |i, j| if seen(i, j) { 0.1 * j as f32 } else { HIDE });
    for (scale, softcap) in
        [(0.0, 0.0), (-0.0, 0.0), (-1.0, 0.0), (-30.0, 0.0), (1.0, 2.0), (-4.0, 0.5), (0.0, 9.0)]
    {
        let problem = biased().scale(scale).softcap(softcap);
        let label = format!("scale {scale}, softcap {softcap}");
        assert_right(&label, &problem, &data);
        each(&problem, data.inputs(), |name, output| {
            let all = output.scores.iter().flatten().zip(output.weights.iter().flatten());
            for (at, (s, p)) in all.enumerate() {
                let seen = seen(at / KEYS, at % KEYS);
                assert_eq!(*s != HIDE, seen, "{label}, {name}, {at}: score {s}");
                assert!(seen || *p == 0.0, "{label}, {name}, {at}: weight {p}");
            }
        });
    }
}

/// Numbers that are not finite, and one whose products are not.
const POISON: [f32; 4] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX];

#[derive(Clone, Copy, Debug)]
enum At {
    Q,
    K,
    V,
    Bias,
}

/// A bad element spoils the rows that may see it and no other, though they share its tile.
#[test]
fn poison_stays_where_it_can_be_seen() {
    let hidden_to_odd_rows = |i: usize, j: usize| if i % 2 == 1 && j == 20 { HIDE } else { 0.0 };
    let causal = problem().causal().align(Align::TopLeft);
    let window = problem().band(Band { left: Some(9), right: Some(3) }).align(Align::Shift(4));
    // (label, problem, operand, its row, whether row i may see it)
    type Row = (&'static str, Problem, At, usize, fn(usize) -> bool);
    let rows: [Row; 8] = [
        ("causal", causal.clone(), At::K, 20, |i| i >= 20),
        ("causal", causal.clone(), At::V, 20, |i| i >= 20),
        ("window", window.clone(), At::K, 20, |i| (13..=25).contains(&i)),
        ("window", window, At::V, 20, |i| (13..=25).contains(&i)),
        ("hidden by bias", biased(), At::K, 20, |i| i % 2 == 0),
        ("hidden by bias", biased(), At::V, 20, |i| i % 2 == 0),
        ("a query", causal, At::Q, 7, |i| i == 7),
        ("a bias", biased(), At::Bias, 7, |i| i == 7),
    ];
    for (label, problem, at, row, sees) in rows {
        let clean = data(&problem, hidden_to_odd_rows);
        let (want, [o, lse, _, weights]) = answer(&problem, clean.inputs());
        for poison in POISON {
            let mut bad = clean.clone();
            let (target, first, n) = match at {
                At::Q => (&mut bad.q, row * DIM, DIM),
                At::K => (&mut bad.k, row * DIM, DIM),
                At::V => (&mut bad.v, row * DIM, DIM),
                At::Bias => (bad.bias.as_mut().unwrap(), row * KEYS, KEYS),
            };
            target[first..first + n].iter_mut().step_by(3).for_each(|x| *x = poison);
            each(&problem, bad.inputs(), |name, output| {
                for i in (0..QUERIES).filter(|&i| !sees(i)) {
                    let of = |x: &[f32], n: usize| x[i * n..][..n].to_vec();
                    let parts = [
                        (o, Some(&output.o), Some(&want.o), DIM),
                        (lse, output.lse.as_ref(), want.lse.as_ref(), 1),
                        (weights, output.weights.as_ref(), want.weights.as_ref(), KEYS),
                    ];
                    for (tolerance, got, want, n) in parts {
                        let Some(got) = got else { continue };
                        let (got, want) = (of(got, n), of(want.unwrap(), n));
                        assert!(
                            max_error(&got, &want) <= tolerance,
                            "{label}, {poison} in {at:?}, {name}, row {i}: {got:?}, not {want:?}"
                        );
                    }
                }
            });
        }
    }
}

/// A bad head leaves the other heads and batch entries alone.
#[test]
fn poison_stays_in_its_head() {
    let problem = Problem::new(Shape::self_attention(2, 2, KEYS as u32, DIM as u32));
    let clean = Data::new(&problem, 6);
    let (want, [tolerance, ..]) = answer(&problem, clean.inputs());
    let head = KEYS * DIM;
    for poison in POISON {
        let mut bad = clean.clone();
        for x in [&mut bad.q, &mut bad.k, &mut bad.v] {
            x[head..2 * head].fill(poison);
        }
        each(&problem, bad.inputs(), |name, output| {
            for at in [0, 2, 3] {
                let of = |x: &[f32]| x[at * head..][..head].to_vec();
                let error = max_error(&of(&output.o), &of(&want.o));
                assert!(error <= tolerance, "{name}, {poison}, head {at}: {error}");
            }
        });
    }
}
