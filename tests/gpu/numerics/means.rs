//! A weighted mean of finite values is finite, and no larger than they are.

use wgpu_attention::half::bf16;
use wgpu_attention::{Align, Element, Problem, Shape};

use crate::kernels::{Who, every};
use crate::support::Data;
use wgpu_attention_support::cases::case;

const DIM: usize = 8;

/// The value of key j of n, in units of the largest number: one pattern for each dim.
const PATTERNS: [fn(usize, usize) -> f64; DIM] = [
    |_, _| 1.0,
    |_, _| -1.0,
    |j, _| if j % 2 == 0 { 1.0 } else { -1.0 },
    |_, _| 0.6,
    |j, n| if 2 * j < n { 1.0 } else { -1.0 },
    |j, _| if j == 0 { 1.0 } else { 0.0 },
    |j, n| 1.0 - j as f64 / n as f64,
    |_, _| 0.02,
];

fn largest(element: Element) -> f64 {
    if element == Element::Bf16 { bf16::MAX.to_f64() } else { f32::MAX.into() }
}

/// The names of what is computed, and how.
fn problems(keys: u32) -> Vec<(&'static str, Problem, [Element; 2])> {
    use Element::{Bf16, F32};
    let plain = Problem::new(Shape::self_attention(1, 2, 5, DIM as u32).kv_len(keys));
    let causal = plain.clone().causal().align(Align::BottomRight);
    vec![
        ("equal weights", plain.clone().scale(0.0), [F32, F32]),
        ("any weights", plain.clone(), [F32, F32]),
        ("sinks", causal.sinks(), [F32, F32]),
        ("keys in bf16", plain.clone(), [F32, Bf16]),
        ("all in bf16", plain, [Bf16, Bf16]),
    ]
}

#[test]
fn means_of_the_largest_numbers() {
    means(false);
}

pub fn means(whole: bool) {
    let mut wrong = Vec::new();
    for keys in [1, 2, 3, 7, 64, 65, 1000] {
        for (number, (label, problem, types)) in problems(keys).into_iter().enumerate() {
            let mut data = Data::new(&problem, 7).rounded(types);
            let most = largest(types[1]);
            for (at, v) in data.v.iter_mut().enumerate() {
                let n = keys as usize;
                let exact = most * PATTERNS[at % DIM](at / DIM % n, n);
                *v = match types[1] {
                    Element::Bf16 => bf16::from_f64(exact).to_f32(),
                    _ => exact as f32,
                };
            }
            data.given.sinks =
                problem.clone().eq(&problem.clone().sinks()).then(|| vec![0.5, -3.0]);
            let mut want = None;
            let who = if whole { Who::Sizes } else { Who::Half(number) };
            let case = case(label, problem).stored_as(types[0], types[1]);
            every(case, data, who, |name, output| {
                let want = want.get_or_insert_with(|| output.clone());
                for (&got, &want) in output.o.iter().zip(&want.o) {
                    let (got, want) = (f64::from(got), f64::from(want));
                    let rounding = if types[0] == Element::Bf16 { 2f64.powi(-8) } else { 0.0 };
                    let far = (got - want).abs() / most;
                    let right = got.is_finite() && far <= 1e-5 + rounding * want.abs() / most;
                    if !right {
                        wrong.push(format!("{label}, {keys} keys, {name}: {got:e}, not {want:e}"));
                        break;
                    }
                }
            });
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Infinities and NaN among the values stay in their dim and in the rows that see them.
#[test]
fn what_is_not_finite_does_not_spread() {
    let problem = Problem::new(Shape::self_attention(1, 1, 9, DIM as u32)).causal();
    let mut data = Data::new(&problem, 3);
    data.v.iter_mut().enumerate().for_each(|(at, v)| *v = if at % 2 == 0 { f32::MAX } else { 1.0 });
    for bad in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
        let mut data = data.clone();
        data.v[6 * DIM + 2] = bad;
        every(case("visible", problem.clone()), data, Who::Sizes, |name, output| {
            for (i, row) in output.o.chunks(DIM).enumerate() {
                for (c, &o) in row.iter().enumerate().filter(|(c, _)| i < 6 || *c != 2) {
                    let want = if c % 2 == 0 { f32::MAX } else { 1.0 };
                    let right = o.is_finite() && (o / want - 1.0).abs() <= 1e-5;
                    assert!(right, "{name}, {bad}, row {i}, dim {c}: {o:e}");
                }
                assert!(i < 6 || !row[2].is_finite(), "{name}, {bad}, row {i}: {:e}", row[2]);
            }
        });
    }
}
