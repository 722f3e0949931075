//! f16 and bf16: as near to the truth as an unfused computation in that type, exact where no
//! arithmetic is due, rounded as `half` rounds.

use wgpu_attention::half::{bf16, f16};
use wgpu_attention::{Align, Choice, Element, Gpu, Inputs, Problem, Scalar, Shape, cpu};

use crate::checks::{FLASH, STAGED};
use crate::kernels::KERNELS;
use crate::support::{gpu, normal};

pub const BOTH: [Choice; 2] = [FLASH, STAGED];

fn stored<T: Scalar>(n: usize, seed: u64) -> Vec<T> {
    normal(n, seed).into_iter().map(|x| T::from_f64(x.into())).collect()
}

/// Every number of a 16-bit type.
fn patterns<T: Scalar>() -> Vec<T> {
    let bits: Vec<u16> = (0..=u16::MAX).collect();
    bytemuck::cast_slice(&bits).to_vec()
}

/// Query row i as unfused kernels compute it that store S and P in the type of O, or in that of K
/// and V where O is f32.
fn unfused<T: Scalar, C: Scalar>(
    problem: &Problem,
    q: &[T],
    k: &[C],
    v: &[C],
    i: usize,
) -> Vec<f64> {
    let round = |x: f64| match T::ELEMENT {
        Element::F32 => C::from_f64(x).to_f64(),
        _ => T::from_f64(x).to_f64(),
    };
    let shape = problem.shape();
    let (dim, q_len) = (shape.head_dim as usize, shape.q_len as usize);
    let scale = 1.0 / (dim as f64).sqrt();
    // Causal or not is told by the lengths here.
    let keys = if shape.q_len == shape.kv_len { i % q_len + 1 } else { shape.kv_len as usize };
    let dot = |k: &[C]| -> f64 {
        q[i * dim..][..dim].iter().zip(k).map(|(q, k)| q.to_f64() * k.to_f64()).sum()
    };
    let s: Vec<f64> = k.chunks(dim).take(keys).map(|k| round(scale * dot(k))).collect();
    let m = s.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let l: f64 = s.iter().map(|s| (s - m).exp()).sum();
    let mut o = vec![0.0; dim];
    for (s, v) in s.iter().zip(v.chunks(dim)) {
        let p = round((s - m).exp() / l);
        o.iter_mut().zip(v).for_each(|(o, v)| *o += p * v.to_f64());
    }
    o
}

/// With e the error of the unfused computation against f64, ours is at most 2 e + 1e-5.
pub fn rule<T: Scalar, C: Scalar>(gpu: &Gpu, choices: &[Choice], dim: u32) {
    for (q_len, kv_len) in [(300, 300), (211, 457)] {
        let shape = Shape::self_attention(1, 2, q_len, dim).kv_heads(1).kv_len(kv_len);
        let problem = Problem::new(shape).align(Align::TopLeft);
        let problem = if q_len == kv_len { problem.causal() } else { problem };
        let [rows, keys] = [2 * q_len, kv_len].map(|tokens| (tokens * dim) as usize);
        let (q, k, v) = (stored::<T>(rows, 1), stored::<C>(keys, 2), stored::<C>(keys, 3));
        let inputs = Inputs::new(&q, &k, &v);
        let row = |i| cpu::row(&problem, inputs, [0, i / q_len, i % q_len]).expect("a row").o;
        let exact: Vec<f64> = (0..2 * q_len).flat_map(row).collect();
        let error = |o: &mut dyn Iterator<Item = f64>| {
            o.zip(&exact).map(|(o, exact)| (o - exact).abs()).fold(0.0, f64::max)
        };
        let rows = (0..2 * q_len as usize).flat_map(|i| unfused(&problem, &q, &k, &v, i));
        let e = error(&mut rows.into_iter());
        for &choice in choices {
            let got = gpu.attention_with(&problem, inputs, choice).expect("a good call");
            let ours = error(&mut got.o.iter().map(|o| o.to_f64()));
            let name = format!("{:?} and {:?}", T::ELEMENT, C::ELEMENT);
            let sizes = format!("{q_len} x {kv_len} x {dim}, {:?}", choice.method);
            println!("{name}, {sizes}: error {ours:.2e}, unfused {e:.2e}");
            assert_eq!(got.o.len(), exact.len());
            assert!(ours <= 2.0 * e + 1e-5, "{name}, {sizes}: {ours:e}, unfused {e:e}");
        }
    }
}

#[test]
fn no_worse_than_an_unfused_computation() {
    rules(1, 16);
    rule::<f16, f16>(gpu(), &BOTH, 64);
}

/// The other kernels.
#[test]
fn no_worse_in_short_rows() {
    let all = KERNELS.iter().filter(|kernel| kernel.takes_f16(16));
    let all: Vec<_> = all.map(|kernel| (kernel.gpu(), kernel.choice())).collect();
    println!("{} kernels of {}", all.len(), KERNELS.len());
    assert!(all.len() >= 4);
    for (gpu, choice) in all {
        rule::<f16, f16>(gpu, &[choice], 16);
    }
}

/// All pairs of types, each by so many of both methods.
pub fn rules(methods: usize, dim: u32) {
    let pairs: [fn(&Gpu, &[Choice], u32); 8] = [
        rule::<f16, f16>,
        rule::<bf16, bf16>,
        rule::<f32, f16>,
        rule::<bf16, f32>,
        rule::<f16, bf16>,
        rule::<f32, bf16>,
        rule::<f16, f32>,
        rule::<bf16, f16>,
    ];
    for (number, rule) in pairs.into_iter().enumerate() {
        let first = number % (BOTH.len() + 1 - methods);
        rule(gpu(), &BOTH[first..][..methods], dim);
    }
}

/// Values, each weighed by one key's weight of 1, in rows of whole quads and of odd length, by one method
/// each or by both.
fn through<T: Scalar, C: Scalar>(values: &[C], both: bool, mut check: impl FnMut(&str, C, T)) {
    for ([dim, value_dim], one) in [[4, 128], [3, 127]].into_iter().zip(BOTH) {
        let batch = values.len().div_ceil(value_dim);
        let shape = Shape::self_attention(batch as u32, 1, 1, dim as u32);
        let problem = Problem::new(shape.value_dim(value_dim as u32));
        let (q, k) = (stored::<T>(batch * dim, 4), stored::<C>(batch * dim, 5));
        let mut v = values.to_vec();
        v.resize(batch * value_dim, C::from_f64(1.0));
        for choice in BOTH.into_iter().filter(|&choice| both || choice == one) {
            let name = format!("{:?}, rows of {value_dim}, {:?}", C::ELEMENT, choice.method);
            let got = gpu().attention_with(&problem, Inputs::new(&q, &k, &v), choice);
            let got = got.expect("a good call").o;
            assert_eq!(got.len(), v.len());
            v.iter().zip(got).for_each(|(&v, got)| check(&name, v, got));
        }
    }
}

/// What `v` becomes is the same number, NaN for NaN. A sum that starts at 0 makes 0 of -0, and WGSL
/// lets a device take an f32 for 0 that is below the normal ones. A sum over one key is in quarters, and
/// its mean in halves: of numbers that are then below the normal ones, the last bit of a bf16 may differ.
fn is_right(v: f64, got: f64, want: f64) -> bool {
    let least = f64::from(f32::MIN_POSITIVE);
    let is_flushed = v.abs() < least && got == 0.0;
    let last_bit = (2f64.powi(-7) * v.abs()).max(2f64.powi(-133));
    let is_tiny = v.abs() < 8.0 * least && (got - want).abs() <= last_bit;
    got == want || is_flushed || is_tiny || (got.is_nan() && want.is_nan())
}

/// All numbers of a type, as V, come back in O: in O of the same type, and in f32.
#[test]
fn every_number_comes_back() {
    every_number(false);
}

pub fn every_number(both: bool) {
    fn check<T: Scalar, C: Scalar>(both: bool) {
        let mut zeros = 0;
        through::<T, C>(&patterns::<C>(), both, |name, v, got| {
            let (v, got) = (v.to_f64(), got.to_f64());
            assert!(is_right(v, got, v), "{name}: {v:e} became {got:e}");
            zeros += usize::from(got == 0.0 && v != 0.0);
        });
        println!("{:?} in {:?}: {zeros} numbers became 0", C::ELEMENT, T::ELEMENT);
    }
    check::<f16, f16>(both);
    check::<bf16, bf16>(both);
    check::<f32, f16>(both);
    check::<f32, bf16>(both);
}

/// What lies halfway between two neighbours of a type, all above 0; the last between the largest
/// number and the next power of two.
fn ties<T: Scalar>() -> Vec<f32> {
    let numbers = patterns::<T>().into_iter().map(T::to_f64);
    let mut numbers: Vec<f64> = numbers.take_while(|x| x.is_finite()).collect();
    let [.., before, last] = numbers[..] else { unreachable!("a type has numbers") };
    numbers.push(2.0 * last - before);
    numbers.windows(2).map(|pair| ((pair[0] + pair[1]) / 2.0) as f32).collect()
}

fn neighbours(x: f32) -> [f32; 2] {
    [-1, 1].map(|by| f32::from_bits(x.to_bits().saturating_add_signed(by)))
}

/// An f32 result becomes the nearest number of O's type, ties to even.
#[test]
fn results_round_to_the_nearest() {
    results_round(false);
}

pub fn results_round(both: bool) {
    fn check<T: Scalar>(both: bool, nearest: fn(f32) -> T) {
        let ties = ties::<T>().into_iter();
        let mut edges: Vec<f32> =
            ties.flat_map(|x| [x, neighbours(x)[0], neighbours(x)[1]]).collect();
        edges.extend([0.0, f32::INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1e-45]);
        let edges: Vec<f32> = edges.iter().flat_map(|&x| [x, -x]).collect();
        through::<T, f32>(&edges, both, |name, v, got| {
            let (v, want, got) = (v.into(), nearest(v).to_f64(), got.to_f64());
            let name = format!("{name} in {:?}", T::ELEMENT);
            assert!(is_right(v, got, want), "{name}: {v:e} became {got:e}, not {want:e}");
        });
        println!("{} f32 numbers in {:?}", edges.len(), T::ELEMENT);
    }
    check::<f16>(both, f16::from_f32);
    check::<bf16>(both, bf16::from_f32);
    let ends = [2f32.powi(-25), 65520.0];
    assert_eq!([ties::<f16>()[0], *ties::<f16>().last().expect("some")], ends);
}

/// The CPU reference rounds its f64 results once, however near to a tie they are.
#[test]
fn the_reference_rounds_to_the_nearest() {
    fn check<T: Scalar>(nearest: fn(f32) -> T) {
        for tie in ties::<T>() {
            let far = neighbours(tie);
            let near = [-1, 1].map(|by| f64::from(tie).to_bits().saturating_add_signed(by));
            let near = near.map(f64::from_bits);
            for (x, side) in [(tie.into(), tie), (near[0], far[0]), (near[1], far[1])] {
                for sign in [1.0, -1.0] {
                    let [got, want] = [T::from_f64(sign * x), nearest(sign as f32 * side)];
                    assert_eq!(got.to_f64(), want.to_f64(), "{:e}", sign * x);
                }
            }
        }
        assert!(T::from_f64(f64::NAN).to_f64().is_nan());
        for x in [f64::MAX, f64::INFINITY, f64::MIN_POSITIVE, 0.0, -0.0, 1.0] {
            assert_eq!(T::from_f64(x).to_f64(), nearest(x as f32).to_f64(), "{x:e}");
        }
    }
    check::<f16>(f16::from_f32);
    check::<bf16>(bf16::from_f32);
}
