//! Operands anywhere in their slices.

use wgpu_attention::{Layout, Operand, Problem, Shape};

use super::{Case, case, usual};

/// Part `part` of packed rows `[batch, token, parts, head, dim]`.
pub fn packed_rows(part: u32, parts: u32, heads: u32, tokens: u32, dim: u32) -> Layout {
    let token = parts * heads * dim;
    Layout { offset: part * heads * dim, batch: tokens * token, head: dim, token }
}

pub fn all() -> Vec<Case> {
    use Operand::{K, Lse, O, Q, Scores, V, Weights};
    let laid_out = |name: &str, problem: Problem, rows: &[(Operand, Layout)]| {
        case(name, rows.iter().fold(problem, |problem, &(o, layout)| problem.layout(o, layout)))
    };
    let major = Layout::token_major;
    let to = |offset, batch, head, token| Layout { offset, batch, head, token };
    let own = |dim| Problem::new(Shape::self_attention(2, 3, 37, dim));
    let qkv = |dim| [Q, K, V].map(|o| (o, packed_rows(o as u32, 3, 3, 37, dim)));
    vec![
        laid_out(
            "token-major",
            usual(),
            &[
                (Q, major(4, 21, 8)),
                (K, major(2, 75, 8)),
                (V, major(2, 75, 8)),
                (O, major(4, 21, 8)),
            ],
        ),
        laid_out("packed QKV", own(8), &qkv(8)),
        laid_out("packed QKV of odd rows", own(5), &qkv(5)),
        laid_out("packed QKV, causal", own(8).causal(), &qkv(8)),
        laid_out("odd offsets", usual(), &[(Q, to(1, 672, 168, 8)), (K, to(3, 1200, 600, 8))]),
        laid_out("odd strides", usual(), &[(V, to(0, 1350, 675, 9)), (O, to(7, 2000, 233, 11))]),
        laid_out(
            "far offsets",
            usual(),
            &[(Q, to(100_000, 672, 168, 8)), (O, to(4096, 672, 168, 8))],
        ),
        laid_out(
            "one K and V for the batch",
            usual(),
            &[(K, to(0, 0, 600, 8)), (V, to(0, 0, 600, 8))],
        ),
        laid_out(
            "one K and V for all heads",
            usual(),
            &[(K, to(4, 600, 0, 8)), (V, to(0, 600, 0, 8))],
        ),
        laid_out("one key row", usual(), &[(K, to(0, 0, 0, 0)), (Q, to(0, 0, 8, 0))]),
        laid_out("overlapping rows of K", usual(), &[(K, to(0, 64, 32, 4)), (V, to(0, 3, 2, 1))]),
        laid_out(
            "gaps in O and LSE",
            usual(),
            &[(O, to(8, 2000, 400, 16)), (Lse, to(3, 200, 50, 2))],
        ),
        laid_out("token-major LSE", usual(), &[(Lse, to(0, 84, 1, 4))]),
        laid_out(
            "scores and weights with gaps",
            usual(),
            &[(Scores, to(2, 8000, 1900, 80)), (Weights, to(5, 9000, 77, 400))],
        ),
        laid_out("token-major weights", usual(), &[(Weights, to(0, 6300, 75, 300))]),
    ]
}
