//! Problems to be tuned, small enough for a software adapter.

use wgpu_attention::{
    Align, Band, CacheShape, Element, Group, Layout, Operand, Pool, Problem, Shape,
};

/// Eight classes whose calls last long enough to be compared.
pub fn classes() -> [Problem; 8] {
    let tokens = |tokens: u32, dim: u32| Problem::new(Shape::self_attention(1, 4, tokens, dim));
    let halves = |problem: Problem| {
        problem.element(Group::Queries, Element::F16).element(Group::Keys, Element::F16)
    };
    let step = Shape { q_len: 1, ..Shape::self_attention(1, 8, 1, 64) };
    [
        tokens(128, 64),
        tokens(256, 64).causal(),
        tokens(200, 32).bias_shape(&[200, 200]),
        tokens(256, 128),
        halves(tokens(256, 64)),
        tokens(512, 16).band(Band { left: Some(63), right: Some(0) }).align(Align::TopLeft),
        Problem::new(step.kv_heads(2).kv_len(2048)),
        CACHE.problem(8, 4),
    ]
}

const CACHE: CacheShape = CacheShape::new(1, 4, 1024, 64).element(Element::F16);

/// The cache that one of the classes reads.
pub fn cache_of(problem: &Problem) -> Option<CacheShape> {
    (*problem == CACHE.problem(8, 4)).then_some(CACHE)
}

/// Every kind of operand, tiny.
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
