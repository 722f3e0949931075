//! Classes to be tuned, small enough for a software adapter.

use wgpu_attention::{Align, Band, CacheShape, Element, Group, Problem, Shape};

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
