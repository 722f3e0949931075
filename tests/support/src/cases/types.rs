//! Storage in f16 and bf16: of Q and O, of K and V, in whole quads and not.

use wgpu_attention::Element::{self, Bf16, F16, F32};
use wgpu_attention::{Align, Layout, Operand, Problem};

use super::{Case, case, packed_rows, shape, usual};

pub fn all() -> Vec<Case> {
    let of = |name: &str, [queries, keys]: [Element; 2], problem: Problem| {
        case(format!("{name}, {queries:?} and {keys:?}"), problem).stored_as(queries, keys)
    };
    let odd = Problem::new(shape([2, 4, 2, 21, 75, 6, 5])).causal().align(Align::TopLeft);
    // Each combination once, in rows of one kind or the other.
    let quads = [[F32, F16], [F16, F16], [Bf16, Bf16], [Bf16, F32]];
    let mut all: Vec<_> = quads.map(|types| of("quads", types, usual())).into();
    let odds = [[F32, Bf16], [F16, F32], [F16, Bf16], [Bf16, F16]];
    all.extend(odds.map(|types| of("odd rows", types, odd.clone())));
    all.extend(layouts());
    all.extend(sizes());
    all
}

fn layouts() -> Vec<Case> {
    use Operand::{K, O, Q, V};
    let of = |name: &str, problem: Problem, rows: &[(Operand, Layout)]| {
        let problem = rows.iter().fold(problem, |problem, &(o, layout)| problem.layout(o, layout));
        case(format!("F16, {name}"), problem).stored_as(F16, F16)
    };
    let major = Layout::token_major;
    let to = |offset, batch, head, token| Layout { offset, batch, head, token };
    let own = |dim| Problem::new(shape([2, 3, 3, 37, 37, dim, dim]));
    let qkv = |dim| [Q, K, V].map(|o| (o, packed_rows(o as u32, 3, 3, 37, dim)));
    let rows =
        [(Q, major(4, 21, 8)), (K, major(2, 75, 8)), (V, major(2, 75, 8)), (O, major(4, 21, 8))];
    vec![
        of("token-major", usual(), &rows),
        of("packed QKV", own(8).causal(), &qkv(8)),
        of("packed QKV of odd rows", own(5), &qkv(5)),
        of("odd offsets", usual(), &[(Q, to(1, 672, 168, 8)), (K, to(3, 1200, 600, 8))]),
        of("odd strides", usual(), &[(V, to(0, 1350, 675, 9)), (O, to(7, 2000, 233, 11))]),
        of("even strides", usual(), &[(K, to(6, 1400, 700, 10)), (O, to(2, 2000, 234, 10))]),
        of("far offsets", usual(), &[(Q, to(100_001, 672, 168, 8)), (O, to(4096, 672, 168, 8))]),
        of("token-major, odd O", own(5), &[(O, major(3, 37, 5))]),
        of("one K and V for all heads", usual(), &[(K, to(4, 600, 0, 8)), (V, to(0, 600, 0, 8))]),
    ]
}

fn sizes() -> Vec<Case> {
    let of =
        |name: &str, problem: Problem| case(format!("Bf16, {name}"), problem).stored_as(Bf16, Bf16);
    let [b, h, _, q, k, ..] = super::USUAL;
    let odd = || Problem::new(shape([2, 6, 3, 21, 75, 6, 5]));
    vec![
        of("head_dim 1, value_dim 1", Problem::new(shape([1, 2, 1, 19, 9, 1, 1]))),
        of("one key", Problem::new(shape([1, 1, 1, 19, 1, 6, 5]))),
        of("no keys", Problem::new(shape([1, 1, 1, 19, 0, 6, 5]))),
        of("lens", usual()).kv_lens(&[0, 40]).q_lens(&[20, 21]).poisoned(),
        of("packed", Problem::new(shape([1, 4, 2, 40, 75, 8, 8])))
            .packed(&[0, 5, 33], &[0, 40, 75])
            .poisoned(),
        of("mask, ALiBi, sinks", odd().align(Align::BottomRight))
            .masked(&[21, 75], |i, j| i % 5 != 0 && (i + j) % 3 != 0)
            .alibi(&[0.2, -0.1])
            .sinks(&[0.0, 1.0]),
        Case { excluded: 3, ..of("bias", odd().bias_shape(&[b, 1, q, k])) }
            .masked(&[h + 2, 1, k], |_, j| j % 4 != 0),
    ]
}
