//! Problems of every kind.

use wgpu_attention::{Choice, Layout, Method, Operand, Problem, Shape, Tile};

/// (name, problem, choice). The name is for messages.
pub fn problems() -> Vec<(&'static str, Problem, Choice)> {
    let auto = Choice::default();
    let staged = Choice::method(Method::Staged);
    let square = |d: u32| Shape::self_attention(1, 8, 128, d);
    let plain = |shape: Shape| Problem::new(shape);
    let all = |shape: Shape| {
        let full = [shape.batch, shape.q_heads, shape.q_len, shape.kv_len];
        plain(shape).bias_shape(&full).lse().scores().weights()
    };
    let odd = Shape { q_len: 33, head_dim: 127, ..square(65) };
    vec![
        ("64", plain(square(64)), auto),
        ("64 by hand", plain(square(64)), Choice::tile(Tile { queries: 32, keys: 32 })),
        ("64 staged", plain(square(64)), staged),
        ("1", plain(square(1)).causal().lse(), auto),
        ("one query", plain(Shape { q_len: 1, ..square(128) }), auto),
        ("few queries", plain(Shape { q_len: 9, ..square(80) }).lse(), auto),
        ("256", plain(square(256)), auto),
        ("576 to 512", plain(square(576).value_dim(512)), auto),
        ("576 to 512 staged", plain(square(576).value_dim(512)), staged),
        ("odd, bias", plain(odd).bias_shape(&[33, 128]).lse(), auto),
        ("everything", all(odd), auto),
        ("everything in an arena", in_arena(all(odd)), auto),
        ("flash in an arena", in_arena(plain(odd).bias_shape(&[128]).lse()), auto),
        ("many heads", plain(Shape { batch: 300, q_len: 1, kv_len: 2, ..square(4) }), auto),
        ("many rows staged", plain(Shape { q_len: 1000, kv_len: 3, ..square(4) }), staged),
        ("long", plain(Shape::self_attention(1, 1, 40, 4).kv_len(100_000)), auto),
        ("long staged", plain(Shape::self_attention(1, 1, 40, 4).kv_len(100_000)), staged),
        ("too large", plain(Shape::self_attention(65_536, 8, 4, 64)), auto),
        ("no keys", plain(square(64).kv_len(0)).lse().weights(), auto),
        ("no queries", plain(Shape { q_len: 0, ..square(64) }), auto),
    ]
}

/// The same in one buffer, one operand after the other.
fn in_arena(problem: Problem) -> Problem {
    let shape = problem.shape();
    let Shape { q_heads, kv_heads, q_len, kv_len, head_dim, value_dim, .. } = shape;
    let mut first = problem.elements(Operand::Bias) as u32;
    let laid_out = [
        (Operand::Q, q_heads, q_len, head_dim),
        (Operand::K, kv_heads, kv_len, head_dim),
        (Operand::V, kv_heads, kv_len, value_dim),
        (Operand::O, q_heads, q_len, value_dim),
        (Operand::Lse, q_heads, q_len, 1),
        (Operand::Scores, q_heads, q_len, kv_len),
        (Operand::Weights, q_heads, q_len, kv_len),
    ];
    laid_out.into_iter().fold(problem.arena(), |problem, (operand, heads, tokens, inner)| {
        let layout = Layout::head_major(heads, tokens, inner).at(first);
        first += shape.batch * heads * tokens * inner;
        problem.layout(operand, layout)
    })
}
