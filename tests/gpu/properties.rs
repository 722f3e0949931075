//! What attention must satisfy whatever the numbers: laws, each on every implementation.

mod sequences;
mod terms;

use wgpu_attention::{Align, Band, Inputs, Operand, Output, Problem, Shape};

use crate::checks::{FLASH, STAGED, answer, each};
use crate::support::{Data, gpu, max_error};

/// Two heads, more than one tile of queries, more than one split of keys.
const SHAPE: Shape = Shape::self_attention(1, 2, 90, 8);
const ROW: usize = 8;

fn data(problem: &Problem) -> Data {
    Data::new(problem, 3)
}

/// Rows of 8 in another order: row `to` of each head is row `order[to]`.
fn reordered(x: &[f32], order: &[usize]) -> Vec<f32> {
    let heads = x.chunks(order.len() * ROW);
    heads.flat_map(|x| order.iter().flat_map(|&from| x[from * ROW..][..ROW].to_vec())).collect()
}

/// Runs two calls on every implementation and hands over both outputs.
fn both(
    [a, b]: [&Problem; 2],
    [x, y]: [Inputs<'_>; 2],
    mut check: impl FnMut(&str, &Output, &Output),
) {
    let mut first = Vec::new();
    each(a, x, |_, output| first.push(output.clone()));
    let mut first = first.iter();
    each(b, y, |name, output| check(name, first.next().expect("as many"), output));
}

/// O (P x) = P O(x); not so if the tokens' order counts.
#[test]
fn permuted_tokens_permute_rows() {
    // 37 and 90 have no common divisor.
    let order: Vec<_> = (0..90).map(|i| (37 * i + 11) % 90).collect();
    for (problem, holds) in [(Problem::new(SHAPE), true), (Problem::new(SHAPE).causal(), false)] {
        let x = data(&problem);
        let [q, k, v] = [&x.q, &x.k, &x.v].map(|x| reordered(x, &order));
        let [tolerance, ..] = answer(&problem, x.inputs()).1;
        let inputs = [x.inputs(), Inputs::new(&q, &k, &v)];
        both([&problem; 2], inputs, |name, before, after| {
            let error = max_error(&reordered(&before.o, &order), &after.o);
            assert!(if holds { error <= 2.0 * tolerance } else { error > 0.5 }, "{name}: {error}");
        });
    }
}

/// Weights sum to 1, so that one value for all keys comes out unchanged.
#[test]
fn constant_values_come_out() {
    let problem = Problem::new(SHAPE).causal();
    let x = data(&problem);
    let row = [1.0, -2.0, 1000.0, 1e-20, 0.0, -0.3, 7.7, 1e30];
    let v = row.repeat(2 * 90);
    each(&problem, Inputs::new(&x.q, &x.k, &v), |name, output| {
        for (got, want) in output.o.iter().zip(row.iter().cycle()) {
            assert!((got - want).abs() <= 2e-6 * want.abs(), "{name}: {got}, not {want}");
        }
    });
}

/// Every output lies between the smallest and the largest value that its row may see.
#[test]
fn outputs_lie_between_values() {
    let problem = Problem::new(SHAPE).causal().scale(3.0);
    let x = data(&problem);
    each(&problem, x.inputs(), |name, output| {
        for (head, (o, v)) in output.o.chunks(90 * ROW).zip(x.v.chunks(90 * ROW)).enumerate() {
            for (at, &o) in o.iter().enumerate() {
                let seen = || v[..(at / ROW + 1) * ROW].iter().skip(at % ROW).step_by(ROW);
                let least = seen().fold(f32::INFINITY, |a, &b| a.min(b));
                let most = seen().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
                assert!(o >= least - 4e-6 && o <= most + 4e-6, "{name}: head {head}, {at}: {o}");
            }
        }
    });
}

/// A row that sees one key returns that key's value.
#[test]
fn one_key_returns_its_value() {
    let problem = Problem::new(SHAPE).band(Band { left: Some(0), right: Some(0) });
    let x = data(&problem);
    each(&problem, x.inputs(), |name, output| {
        for (o, v) in output.o.iter().zip(&x.v) {
            assert!((o - v).abs() <= 1e-6 * v.abs(), "{name}: {o}, not {v}");
        }
    });
}

#[test]
fn grouped_heads_are_repeated_keys() {
    let grouped = Problem::new(Shape { q_heads: 6, ..SHAPE });
    let repeated = Problem::new(Shape { q_heads: 6, kv_heads: 6, ..SHAPE });
    let x = data(&grouped);
    let repeat = |x: &[f32]| x.chunks(90 * ROW).flat_map(|head| head.repeat(3)).collect::<Vec<_>>();
    let (k, v) = (repeat(&x.k), repeat(&x.v));
    let inputs = [x.inputs(), Inputs::new(&x.q, &k, &v)];
    both([&grouped, &repeated], inputs, |name, a, b| assert_eq!(a, b, "{name}"));
}

/// A power of two on the scale is one on Q, bit for bit.
#[test]
fn scale_scales_queries() {
    let (a, b) = (Problem::new(SHAPE).scale(1.5), Problem::new(SHAPE).scale(0.75));
    let x = data(&a);
    let twice: Vec<_> = x.q.iter().map(|x| 2.0 * x).collect();
    let inputs = [x.inputs(), Inputs::new(&twice, &x.k, &x.v)];
    both([&a, &b], inputs, |name, a, b| assert_eq!(a, b, "{name}"));
}

/// A constant added to all scores of a row changes its LSE by that constant, and nothing else.
#[test]
fn shifted_scores_shift_only_the_lse() {
    let problem = Problem::new(SHAPE).bias_shape(&[90, 1]);
    let x = data(&problem);
    let bias: Vec<_> = (0..90).map(|i| 20.0 - i as f32).collect();
    let zero = [0.0; 90];
    let calls = [x.inputs().bias(&zero), x.inputs().bias(&bias)];
    let [o, lse, ..] = answer(&problem, calls[1]).1;
    both([&problem; 2], calls, |name, before, after| {
        let error = max_error(&before.o, &after.o);
        // Scores near 70 are rounded to 8e-6.
        assert!(error <= 2.0 * o.max(2e-5), "{name}: {error}");
        let shifted = before.lse.as_ref().expect("wanted").iter().zip(bias.iter().cycle());
        let want: Vec<_> = shifted.map(|(lse, bias)| lse + bias).collect();
        let error = max_error(after.lse.as_ref().expect("wanted"), &want);
        assert!(error <= 2.0 * lse, "{name}: {error}");
    });
}

/// The first rows of causal attention do not depend on what comes after them.
#[test]
fn causal_rows_ignore_later_tokens() {
    let whole = Problem::new(SHAPE).causal();
    let x = data(&whole);
    let [tolerance, ..] = answer(&whole, x.inputs()).1;
    let short = Problem::new(SHAPE.kv_len(70)).causal().align(Align::TopLeft);
    let first = |x: &[f32]| {
        x.chunks(90 * ROW).flat_map(|head| head[..70 * ROW].to_vec()).collect::<Vec<_>>()
    };
    let (k, v) = (first(&x.k), first(&x.v));
    let inputs = [x.inputs(), Inputs::new(&x.q, &k, &v)];
    both([&whole, &short], inputs, |name, a, b| {
        let error = max_error(&first(&a.o), &first(&b.o));
        assert!(error <= 2.0 * tolerance, "{name}: {error}");
    });
}

/// Partial results over two halves of the keys merge to the result over all of them.
#[test]
fn halves_of_the_keys_merge() {
    let (whole, half) = (Problem::new(SHAPE.kv_len(180)), Problem::new(SHAPE));
    let x = data(&whole);
    let part = |x: &[f32], at: usize| {
        let heads = x.chunks(180 * ROW);
        heads.flat_map(|head| head[at * 90 * ROW..][..90 * ROW].to_vec()).collect::<Vec<_>>()
    };
    let (want, [tolerance, lse_tolerance, ..]) = answer(&whole, x.inputs());
    let [(k0, v0), (k1, v1)] = [0, 1].map(|at| (part(&x.k, at), part(&x.v, at)));
    let inputs = [Inputs::new(&x.q, &k0, &v0), Inputs::new(&x.q, &k1, &v1)];
    both([&half; 2], inputs, |name, a, b| {
        let lses = [a, b].map(|output| output.lse.as_ref().expect("wanted"));
        for (row, (&x, &y)) in lses[0].iter().zip(lses[1]).enumerate() {
            let lse = x.max(y) + ((x - x.max(y)).exp() + (y - x.max(y)).exp()).ln();
            let error = (lse - want.lse.as_ref().expect("wanted")[row]).abs();
            assert!(error <= 2.0 * lse_tolerance, "{name}: {error}");
            for c in row * ROW..(row + 1) * ROW {
                let o = (x - lse).exp() * a.o[c] + (y - lse).exp() * b.o[c];
                assert!((o - want.o[c]).abs() <= 2.0 * tolerance, "{name}: {o}");
            }
        }
    });
}

/// LSE = ln(sum exp(s)), p = exp(s - LSE), and p sums to 1: of what a kernel itself returned.
#[test]
fn scores_weights_and_lse_agree() {
    let band = Band { left: Some(30), right: Some(2) };
    let shape = SHAPE.kv_len(75);
    let problem = Problem::new(shape).band(band).align(Align::BottomRight).scale(2.0);
    let mut rows = 0;
    each(&problem, data(&problem).inputs(), |name, output| {
        let (Some(scores), Some(weights), Some(lse)) =
            (&output.scores, &output.weights, &output.lse)
        else {
            return;
        };
        for ((s, p), &lse) in scores.chunks(75).zip(weights.chunks(75)).zip(lse) {
            rows += 1;
            let sum: f64 = s.iter().map(|&s| f64::from(s).exp()).sum();
            let total: f64 = p.iter().copied().map(f64::from).sum();
            if sum == 0.0 {
                assert!(lse == f32::NEG_INFINITY && total == 0.0, "{name}: {lse}, {total}");
                continue;
            }
            assert!((sum.ln() - f64::from(lse)).abs() < 2e-6 * sum.ln().abs().max(1.0), "{name}");
            assert!((total - 1.0).abs() < 1e-6, "{name}: weights sum to {total}");
            for (&s, &p) in s.iter().zip(p) {
                let want = (f64::from(s) - f64::from(lse)).exp();
                assert!((f64::from(p) - want).abs() < 3e-6, "{name}: {p}, not {want}");
                assert_eq!(p == 0.0, s == f32::NEG_INFINITY, "{name}");
            }
        }
    });
    assert_eq!(rows, 3 * 180);
}

/// n tokens have n * n scores: the staged kernels store them, the fused one does not.
#[test]
fn doubled_tokens_quadruple_scores() {
    let of = |tokens| Problem::new(Shape::self_attention(1, 2, tokens, 8));
    for tokens in [64, 128, 256] {
        let [once, twice] = [tokens, 2 * tokens].map(of);
        let elements = |problem: &Problem, o| problem.clone().scores().weights().elements(o);
        for operand in [Operand::Scores, Operand::Weights] {
            assert_eq!(elements(&twice, operand), 4 * elements(&once, operand));
        }
        assert_eq!(twice.elements(Operand::O), 2 * once.elements(Operand::O));
        let scratch = |problem: &Problem, choice| {
            gpu().planner().plan_with(problem, choice).expect("a good problem").scratch_bytes()
        };
        assert_eq!(scratch(&once, STAGED), 4 * elements(&once, Operand::Scores));
        assert_eq!(scratch(&twice, STAGED), 4 * scratch(&once, STAGED));
        assert_eq!([&once, &twice].map(|problem| scratch(problem, FLASH)), [0, 0]);
    }
}
