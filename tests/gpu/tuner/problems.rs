//! Problems to be tuned, tiny.

use wgpu_attention::{Align, CacheShape, Element, Group, Layout, Operand, Pool, Problem, Shape};

/// Every kind of operand.
pub fn kinds() -> Vec<(&'static str, Problem)> {
    let shape = Shape::self_attention(2, 4, 20, 8).kv_heads(2);
    let plain = || Problem::new(shape);
    let packed = Problem::new(Shape { batch: 1, ..shape }).packed(3);
    let typed = |queries, keys| plain().element(Group::Queries, queries).element(Group::Keys, keys);
    let cache = CacheShape::new(2, 2, 40, 8);
    vec![
        ("plain", plain().lse()),
        ("token-major", plain().layout(Operand::Q, Layout::token_major(4, 20, 8))),
        ("bias, mask", plain().bias_shape(&[20]).mask_shape(&[20, 20])),
        ("lengths", plain().q_lens().kv_lens()),
        ("alibi, sinks", plain().alibi().align(Align::TopLeft).sinks()),
        ("packed", packed.causal().align(Align::TopLeft)),
        ("f16", typed(Element::F16, Element::F16)),
        ("bf16 keys", typed(Element::F32, Element::Bf16)),
        ("bf16", typed(Element::Bf16, Element::Bf16)),
        ("scores", plain().scores().weights()),
        ("no keys", Problem::new(shape.kv_len(0)).lse()),
        ("softcap", plain().softcap(20.0).causal()),
        ("arena", arena(shape)),
        ("cache", cache.problem(4, 1)),
        ("int8 cache", cache.element(Element::Int8).problem(4, 3)),
        ("pages", cache.paged(16, 6).pool(Pool::Buffer).problem(4, 2)),
    ]
}

/// K is V, O behind Q.
fn arena(shape: Shape) -> Problem {
    let (q, kv) = (Layout::head_major(4, 20, 8), Layout::head_major(2, 20, 8));
    let size = shape.batch * shape.q_heads * shape.q_len * shape.head_dim;
    Problem::new(shape)
        .arena()
        .layout(Operand::Q, q)
        .layout(Operand::O, q.at(size))
        .layout(Operand::K, kv.at(2 * size))
        .layout(Operand::V, kv.at(2 * size))
}
