//! Problems of every kind, by name.

use wgpu_attention::{Align, CacheShape, Element, Group, Layout, Operand, Pool, Problem, Shape};

/// Query rows of 8 heads to 300 keys.
pub fn rows(q_len: u32, head_dim: u32, value_dim: u32) -> Problem {
    Problem::new(shape(q_len, head_dim, value_dim))
}

fn shape(q_len: u32, head_dim: u32, value_dim: u32) -> Shape {
    Shape { q_len, ..Shape::self_attention(1, 8, 300, head_dim) }.value_dim(value_dim)
}

/// 32 query heads to 8 of keys.
pub fn grouped(q_len: u32, dim: u32) -> Problem {
    let shape = Shape { q_len, q_heads: 32, ..Shape::self_attention(1, 8, 4096, dim) };
    Problem::new(shape)
}

pub fn typed(problem: Problem, queries: Element, keys: Element) -> Problem {
    problem.element(Group::Queries, queries).element(Group::Keys, keys)
}

pub fn halves(problem: Problem) -> Problem {
    typed(problem, Element::F16, Element::F16)
}

/// Attention of so many new tokens of 32 heads to a cache, f16 in and out if the cache is.
pub fn cached(cache: CacheShape, q_len: u32) -> Problem {
    let problem = cache.problem(4 * cache.kv_heads, q_len);
    if cache.element == Element::F16 { halves(problem) } else { problem }
}

fn arena(problem: Problem) -> Problem {
    let Shape { q_heads, q_len, kv_heads, kv_len, head_dim, value_dim, .. } = problem.shape();
    let homes = [
        (Operand::Q, q_heads, q_len, head_dim),
        (Operand::K, kv_heads, kv_len, head_dim),
        (Operand::V, kv_heads, kv_len, value_dim),
        (Operand::O, q_heads, q_len, value_dim),
    ];
    let mut first = 0;
    homes.into_iter().fold(problem.arena(), |problem, (operand, heads, tokens, dim)| {
        let layout = Layout::head_major(heads, tokens, dim).at(first);
        first += heads * tokens * dim;
        problem.layout(operand, layout)
    })
}

/// Everything that an attention may read and write, but the scores.
fn everything() -> Problem {
    let all = shape(63, 64, 64);
    let full = [1, 8, 63, 300];
    let problem = Problem::new(all).causal().align(Align::BottomRight).softcap(9.0).lse();
    problem.bias_shape(&full).mask_shape(&full).alibi().sinks().q_lens().kv_lens()
}

pub struct Named {
    pub name: &'static str,
    pub problem: Problem,
    /// Matrices multiply its elements.
    pub is_f16: bool,
}

pub fn problems() -> Vec<Named> {
    use Element::{Bf16, F16, F32, Int8};
    let cache = CacheShape::new(2, 8, 600, 64);
    let keys = |kv_len| Problem::new(shape(17, 64, 64).kv_len(kv_len));
    let plain = [
        ("dims 1", rows(63, 1, 1)),
        ("dims 5", rows(63, 5, 5).lse()),
        ("dims 64", rows(63, 64, 64)),
        ("dims 80, values 64", rows(63, 80, 64)),
        ("dims 64, values 65", rows(63, 64, 65)),
        ("dims 128", rows(63, 128, 128)),
        ("dims 132", rows(63, 132, 132)),
        ("dims 192, values 128", rows(63, 192, 128)),
        ("dims 256", rows(63, 256, 256)),
        ("dims 256, values 257", rows(63, 256, 257)),
        ("dims 576, values 512", rows(63, 576, 512)),
        ("dims 8, values 2,052", rows(9, 8, 2052)),
        ("1 row", rows(1, 64, 64)),
        ("1 token of 32:8 heads", grouped(1, 128)),
        ("16 rows", rows(16, 64, 64)),
        ("17 rows", rows(17, 64, 64).causal().align(Align::BottomRight)),
        ("4,096 rows", Problem::new(Shape::self_attention(1, 8, 4096, 64)).causal()),
        ("no rows", rows(0, 64, 64)),
        ("no keys", keys(0).lse()),
        ("1 million keys", keys(1 << 20)),
        ("12 million keys", Problem::new(Shape::self_attention(1, 1, 17, 64).kv_len(12_000_000))),
        ("300,000 heads", Problem::new(Shape::self_attention(37_500, 8, 2, 4))),
        ("bf16", typed(rows(63, 80, 80), Bf16, Bf16)),
        ("f32 to f16", typed(rows(63, 64, 64), F32, F16)),
        ("f16 to bf16", typed(rows(63, 64, 64), F16, Bf16)),
        ("bias", rows(63, 64, 64).bias_shape(&[63, 300])),
        ("mask", rows(63, 64, 64).mask_shape(&[8, 63, 300])),
        ("scores", rows(63, 64, 64).scores()),
        ("weights, LSE", rows(17, 128, 128).weights().lse()),
        ("packed", rows(200, 64, 64).packed(5).causal().align(Align::TopLeft)),
        ("arena", arena(rows(63, 64, 64))),
        ("everything", everything()),
        ("cache", cached(cache, 1)),
        ("cache, bf16", cached(cache.element(Bf16), 9)),
        ("cache, int8", cached(cache.element(Int8), 1)),
        ("cache, pages", cached(cache.paged(16, 50), 17)),
        ("cache, int8 pages", cached(cache.element(Int8).paged(16, 50), 5)),
        ("cache, texture", cached(cache.pool(Pool::Texture), 4)),
        ("cache of 3 GiB", cached(CacheShape::new(1, 8, 800_000, 64), 1)),
    ];
    let multiplied = [
        ("dims 64, f16", rows(63, 64, 64)),
        ("dims 5, f16", rows(63, 5, 6).lse()),
        ("dims 128, f16", rows(63, 128, 128)),
        ("dims 132, f16", rows(63, 132, 132)),
        ("17 rows, f16", rows(17, 80, 80).causal().align(Align::BottomRight)),
        ("16 rows, f16", rows(16, 64, 64)),
        ("4,096 rows, f16", Problem::new(Shape::self_attention(1, 8, 4096, 128)).causal()),
        ("packed, f16", rows(200, 64, 64).packed(5)),
        ("arena, f16", arena(rows(63, 64, 64))),
        ("everything, f16", everything()),
        ("weights, f16", rows(63, 64, 64).weights()),
        ("cache, f16", cached(cache.element(F16), 17)),
        ("cache, f16 pages", cached(cache.element(F16).paged(16, 50), 17)),
    ];
    let plain = plain.map(|(name, problem)| Named { name, problem, is_f16: false });
    let multiplied =
        multiplied.map(|(name, problem)| Named { name, problem: halves(problem), is_f16: true });
    plain.into_iter().chain(multiplied).collect()
}
