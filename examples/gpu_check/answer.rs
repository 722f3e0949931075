//! Operands, and the right answer of some rows in f64.

use wgpu_attention::{Element, Error as Refused, Inputs, Problem, Shape, cpu, half::f16};

use super::case::Case;
use super::line::Error;

/// Up to so many scores every row is checked; beyond, some that are spread over all.
const MOST_SCORES: u64 = 1 << 20;
const SPREAD: u64 = 24;
/// Errors of f32 kernels.
const ALLOWED: f64 = 1e-5;

/// A number near normal(0, 1) for each place in each operand, which f16 holds as it is: any part of
/// an operand can be made again where it is needed.
pub fn noise(operand: u32, at: u32) -> f32 {
    let mut x = at ^ operand.wrapping_mul(0x9E37_79B9);
    for factor in [0x7FEB_352D, 0x846C_A68B] {
        x = (x ^ (x >> 16)).wrapping_mul(factor);
    }
    let sum: u32 = (x ^ (x >> 15)).to_le_bytes().iter().map(|&byte| u32::from(byte)).sum();
    (sum as f32 - 510.0) / 128.0
}

/// So many numbers of an operand, from one on.
pub fn numbers(operand: u32, first: u32, count: u32) -> Vec<f32> {
    (first..first + count).map(|at| noise(operand, at)).collect()
}

pub const Q: u32 = 1;
pub const K: u32 = 2;
pub const V: u32 = 3;

/// The rows that are checked.
pub struct Answer {
    dim: u32,
    /// Each row's number, over batch, heads and tokens, and its right output.
    rows: Vec<(u64, Vec<f64>)>,
    allowed: f64,
}

impl Answer {
    pub fn new(case: &Case) -> Result<Answer, Refused> {
        let Case { heads, kv_heads, rows, keys, dim, .. } = *case;
        let count = u64::from(case.batch) * u64::from(heads) * u64::from(rows);
        let all = count * u64::from(keys) <= MOST_SCORES;
        let some = if all { count } else { SPREAD.min(count) };
        let mut answer = Answer { dim, rows: Vec::new(), allowed: ALLOWED };
        let (mut head, mut unfused) = (None, 0.0f64);
        let mut held = [vec![], vec![]];
        for at in 0..some {
            let row = if some == count { at } else { at * (count - 1) / (some - 1) };
            let (of, i) = ((row / u64::from(rows)) as u32, (row % u64::from(rows)) as u32);
            // The kv head, over the batch too.
            let kv = of / heads * kv_heads + of % heads / (heads / kv_heads);
            if head.replace(kv) != Some(kv) {
                held = [K, V].map(|operand| numbers(operand, kv * keys * dim, keys * dim));
            }
            let seen = if case.causal { i + 1 } else { keys };
            let [k, v] = [&held[0], &held[1]].map(|x| &x[..(seen * dim) as usize]);
            let q = numbers(Q, row as u32 * dim, dim);
            let problem = Problem::new(Shape::self_attention(1, 1, 1, dim).kv_len(seen));
            let right = cpu::row(&problem, Inputs::new(&q, k, v), [0; 3])?;
            if case.element == Element::F16 {
                let other = in_halves(&right, v);
                unfused = unfused.max(largest(&other, &right.o));
            }
            answer.rows.push((row, right.o));
        }
        if case.element == Element::F16 {
            answer.allowed = 2.0 * unfused + ALLOWED;
        }
        Ok(answer)
    }

    /// First element and number of elements of each row.
    pub fn places(&self) -> impl Iterator<Item = (u64, u32)> {
        self.rows.iter().map(|&(row, _)| (row * u64::from(self.dim), self.dim))
    }

    /// Of those rows, one after another.
    pub fn error(&self, got: &[f32]) -> Error {
        let rows = got.chunks(self.dim as usize).zip(&self.rows);
        let errors = rows.map(|(got, (_, right))| {
            largest(&got.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), right)
        });
        let short = got.len() != self.rows.len() * self.dim as usize;
        let found = if short { f64::INFINITY } else { errors.fold(0.0, f64::max) };
        Error { found, allowed: self.allowed }
    }
}

/// The row as unfused kernels would compute it, which store scores, weights and output in f16: twice
/// its error is what an f16 answer may have.
fn in_halves(right: &cpu::Row, v: &[f32]) -> Vec<f64> {
    let round = |x: f64| f16::from_f64(x).to_f64();
    let s: Vec<f64> = right.scores.iter().map(|&s| round(s)).collect();
    let m = s.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let l: f64 = s.iter().map(|s| (s - m).exp()).sum();
    let mut o = vec![0.0; right.o.len()];
    for (s, v) in s.iter().zip(v.chunks(o.len())) {
        let p = round((s - m).exp() / l);
        o.iter_mut().zip(v).for_each(|(o, &v)| *o += p * f64::from(v));
    }
    o.into_iter().map(round).collect()
}

/// The largest difference; infinite if one is not a number.
fn largest(got: &[f64], right: &[f64]) -> f64 {
    let errors = got.iter().zip(right).map(|(got, right)| (got - right).abs());
    errors.fold(0.0, |most, error| if error.is_nan() { f64::INFINITY } else { most.max(error) })
}
