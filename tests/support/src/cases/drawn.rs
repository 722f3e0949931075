//! Cases drawn from seeds: what nobody thought of.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng, rngs::StdRng};
use wgpu_attention::{Align, Band, Layout, Operand, Problem};

use super::Case;

/// How many.
pub const CASES: u64 = 150;

/// Sizes, layouts and options that a seed draws.
pub fn case(seed: u64) -> Case {
    let mut rng = StdRng::seed_from_u64(seed);
    let rng = &mut rng;
    let pick = |rng: &mut StdRng, from: &[u32]| from[rng.random_range(0..from.len())];
    let lengths = [1, 2, 3, 5, 16, 17, 31, 32, 33, 40, 63, 64, 65, 90, 129];
    // Few kernels to compile: whole quads, or nothing of the kind.
    let quads = rng.random_bool(0.6);
    let (head_dim, value_dim, step) = if quads { (8, 8, 4) } else { (6, 10, 1) };
    let (batch, kv_heads) = (rng.random_range(1..=3), rng.random_range(1..=3));
    let heads = kv_heads * rng.random_range(1..=3);
    let (q_len, kv_len) = (pick(rng, &lengths[..14]), pick(rng, &lengths));
    let mut problem =
        Problem::new(super::shape([batch, heads, kv_heads, q_len, kv_len, head_dim, value_dim]));
    if rng.random_bool(0.5) {
        problem = problem.scale(rng.random_range(-2.0..2.0));
    }
    if rng.random_bool(0.3) {
        problem = problem.softcap(rng.random_range(0.5..30.0));
    }
    if rng.random_bool(0.6) {
        let side = |rng: &mut StdRng| rng.random_bool(0.7).then(|| rng.random_range(0..80));
        problem = problem.band(Band { left: side(rng), right: side(rng) });
    }
    problem = problem.align(match rng.random_range(0..3) {
        0 => Align::TopLeft,
        1 => Align::BottomRight,
        _ => Align::Shift(rng.random_range(-100..150)),
    });
    let mut excluded = 0;
    if rng.random_bool(0.5) {
        let full = [batch, heads, q_len, kv_len];
        let given = full.map(|n| if rng.random_bool(0.5) { n } else { 1 });
        problem = problem.bias_shape(&given[rng.random_range(0..=4)..]);
        excluded = pick(rng, &[0, 0, 2, 5, 11]) as usize;
    }
    let inner = [head_dim, head_dim, value_dim, value_dim, 1, kv_len, kv_len];
    use Operand::{K, Lse, O, Q, Scores, V, Weights};
    for (operand, inner) in [Q, K, V, O, Lse, Scores, Weights].into_iter().zip(inner) {
        if rng.random_bool(0.4) {
            let counts = match operand {
                K | V => [batch, kv_heads, kv_len],
                _ => [batch, heads, q_len],
            };
            let repeat = matches!(operand, Q | K | V) && rng.random_bool(0.2);
            problem = problem.layout(operand, layout(rng, counts, inner, step, repeat));
        }
    }
    Case { excluded, ..super::case(format!("drawn from {seed}"), problem) }
}

/// The outer axes in any order, with gaps that are multiples of `step`; one axis may repeat.
fn layout(rng: &mut StdRng, counts: [u32; 3], inner: u32, step: u32, repeat: bool) -> Layout {
    let mut order = [0, 1, 2];
    order.shuffle(rng);
    let (mut strides, mut covered) = ([0; 3], inner);
    for axis in order {
        strides[axis] = covered + step * rng.random_range(0..3);
        covered = strides[axis] * counts[axis];
    }
    if repeat {
        strides[rng.random_range(0..3)] = 0;
    }
    let [batch, head, token] = strides;
    Layout { offset: step * rng.random_range(0..5), batch, head, token }
}
