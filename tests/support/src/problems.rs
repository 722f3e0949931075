//! Problems and projections that make every kind of module.

use wgpu_attention::{
    Align, Append, CacheShape, Choice, Element, Group, Layout, Merge, Method, Operand, Pairing,
    Pool, Problem, Projection, Rotary, Shape, Tile,
};

/// (head_dim, value_dim): whole quads, single elements, one element, the largest.
const DIMS: [(u32, u32); 5] = [(64, 64), (4, 8), (5, 7), (1, 1), (576, 512)];
const TILES: [Option<Tile>; 6] = [
    None,
    Some(Tile { queries: 32, keys: 32 }),
    Some(Tile { queries: 64, keys: 32 }),
    Some(Tile { queries: 4, keys: 128 }),
    Some(Tile { queries: 12, keys: 20 }),
    Some(Tile { queries: 16, keys: 64 }),
];

/// Every kind of storage, bias, output, method, split, dims and tile, each with every other that
/// goes with it.
pub fn problems() -> Vec<(Problem, Choice)> {
    let mut all = Vec::new();
    for (head_dim, value_dim) in DIMS {
        let shape = Shape::self_attention(1, 2, 40, head_dim).value_dim(value_dim).kv_len(3000);
        for bits in 0..32 {
            let on = |bit: u32| bits >> bit & 1 == 1;
            let mut problem = Problem::new(shape);
            problem = if on(0) { problem.lse() } else { problem };
            problem = if on(1) { problem.bias_shape(&[40, 3000]) } else { problem };
            problem = if on(2) { in_arena(problem) } else { problem };
            problem = if on(3) { problem.scores() } else { problem };
            problem = if on(4) { problem.weights() } else { problem };
            all.push((problem.clone(), Choice::method(Method::Staged)));
            if !on(3) && !on(4) {
                all.push((problem.clone(), Choice::method(Method::Decode)));
                let tiles = TILES.into_iter().filter(|tile| tile.is_none() || value_dim <= 64);
                all.extend(tiles.map(|tile| {
                    let choice = tile.map_or(Choice::method(Method::Flash), Choice::tile);
                    (problem.clone(), choice)
                }));
            }
        }
    }
    all.extend(extras());
    all
}

/// Masks, lengths, packed sequences, ALiBi, sinks and storage types.
pub fn extras() -> Vec<(Problem, Choice)> {
    let base =
        |head_dim| Problem::new(Shape::self_attention(1, 2, 40, head_dim).kv_len(3000)).lse();
    let lens = |problem: Problem| problem.q_lens().kv_lens();
    let types = [Element::F32, Element::F16, Element::Bf16];
    let mut all = vec![
        base(64).mask_shape(&[40, 3000]),
        base(64).mask_shape(&[40, 3000]).bias_shape(&[3000]),
        in_arena(base(64).mask_shape(&[3000])),
        lens(base(64)),
        base(64).kv_lens(),
        base(64).q_lens().alibi().align(Align::BottomRight),
        base(64).packed(3),
        base(64).packed(3).alibi().sinks().align(Align::TopLeft).mask_shape(&[40, 3000]),
        lens(base(5)).alibi().sinks().align(Align::TopLeft).mask_shape(&[40, 1]),
        base(64).sinks(),
        base(64).softcap(5.0),
        in_arena(lens(base(64)).sinks()),
    ];
    for queries in types {
        for keys in types {
            let typed = |problem: Problem| {
                problem.element(Group::Queries, queries).element(Group::Keys, keys)
            };
            let even = Layout::head_major(2, 40, 6);
            all.push(typed(base(64)));
            all.push(typed(in_arena(base(64).causal().align(Align::TopLeft))));
            all.push(typed(base(5).layout(Operand::O, even)));
        }
    }
    let with = |problem: Problem| {
        let staged = problem.clone().weights();
        let fused = [Method::Flash, Method::Decode].map(Choice::method);
        let fused = fused.map(|choice| (problem.clone(), choice));
        fused.into_iter().chain([(staged, Choice::method(Method::Staged))])
    };
    all.into_iter().flat_map(with).collect()
}

/// Problems of `broadcast` on subgroups of eight lanes, K and V copied into a texture or not.
pub fn broadcasts() -> Vec<(Problem, Choice)> {
    let plain = problems().into_iter().filter(|(_, choice)| choice.method == Some(Method::Decode));
    let cached = caches().into_iter().map(|(_, _, problem)| problem);
    let cached = cached.filter(|problem| !problem.outputs().weights);
    let tiles = [(8, 8), (16, 8), (32, 4)].map(|(queries, keys)| Tile { queries, keys });
    // Rows too long for registers have as many loop iterations as there are quads.
    let plain = plain.map(|(problem, _)| problem).filter(|problem| problem.shape().head_dim <= 128);
    let all = plain.chain(cached);
    let with = |problem: Problem| {
        let choices = tiles.into_iter().flat_map(|tile| {
            let choice = Choice::method(Method::Broadcast).with_tile(tile);
            [true, false].map(|yes| choice.with_keys_in_texture(yes))
        });
        choices.map(move |choice| (problem.clone(), choice)).collect::<Vec<_>>()
    };
    all.flat_map(with).collect()
}

/// Problems of `flash_matrix`.
pub fn products() -> Vec<(Problem, Choice)> {
    let halves = |problem: Problem| {
        problem.element(Group::Queries, Element::F16).element(Group::Keys, Element::F16)
    };
    let shape = |head_dim, value_dim| {
        Shape::self_attention(1, 2, 40, head_dim).kv_len(3000).value_dim(value_dim)
    };
    let dims = [(64, 64), (128, 128), (40, 24), (2, 66)];
    let plain = dims.map(|(head_dim, value_dim)| Problem::new(shape(head_dim, value_dim)));
    let base = Problem::new(shape(64, 64)).lse();
    let mut all: Vec<_> = plain.into_iter().collect();
    all.extend([
        base.clone().causal().align(Align::TopLeft).alibi().sinks().softcap(5.0),
        base.clone().bias_shape(&[40, 3000]).mask_shape(&[3000]),
        base.clone().packed(3),
        base.clone().q_lens().kv_lens(),
        in_arena(base),
    ]);
    for cache in [CacheShape::new(3, 2, 40, 64), CacheShape::new(3, 2, 40, 64).paged(8, 11)] {
        all.push(cache.element(Element::F16).problem(6, 20));
    }
    let choice = Choice::method(Method::Matrix);
    let tiles = [(64, 32), (32, 16)].map(|(queries, keys)| Tile { queries, keys });
    let with = |problem: Problem| {
        let problem = halves(problem);
        tiles.into_iter().map(move |tile| (problem.clone(), choice.with_tile(tile)))
    };
    all.into_iter().flat_map(with).collect()
}

/// Operands in one buffer, far enough apart.
fn in_arena(problem: Problem) -> Problem {
    let shape = problem.shape();
    let dim = shape.head_dim.max(shape.value_dim).next_multiple_of(4).max(2 * shape.q_len);
    let step = 2 * shape.kv_len * dim;
    // Far enough apart for elements of 4 bytes and of 2.
    let operands = [
        (Operand::Q, 1),
        (Operand::O, 3),
        (Operand::K, 10),
        (Operand::V, 14),
        (Operand::Lse, 20),
        (Operand::Scores, 21),
        (Operand::Weights, 22),
    ];
    operands.into_iter().fold(problem.arena(), |problem, (operand, at)| {
        let layout = match operand {
            Operand::Scores | Operand::Weights => Layout::head_major(2, shape.q_len, shape.kv_len),
            _ => Layout::head_major(2, shape.kv_len, dim),
        };
        problem.layout(operand, layout.at(at * step))
    })
}

/// Few and many tokens, whole quads and not, with and without what can be added.
pub fn projections() -> Vec<Projection> {
    let mut all = Vec::new();
    for (tokens, dim) in [(4, 8), (100, 64), (100, 63)] {
        let plain = Projection::new(tokens, dim, dim);
        all.extend([plain.clone(), plain.clone().bias(), plain.clone().residual()]);
        all.push(plain.bias().residual());
    }
    all
}

/// Short and long rows of every type, into a fresh result, one that holds something, and part 0.
pub fn merges() -> Vec<Merge> {
    let mut all = Vec::new();
    for dim in [2, 64, 300] {
        for element in [Element::F32, Element::F16, Element::Bf16] {
            let merge = Merge::new(Shape::self_attention(1, 2, 40, dim), 3).element(element);
            let ways = [merge.clone(), merge.clone().accumulate(), merge.in_place()];
            all.extend(ways.into_iter().flat_map(|merge| [merge.clone(), merge.sinks()]));
        }
    }
    all
}

/// Caches of every type, contiguous and in pages, in a buffer and in a texture, with and without
/// rotation.
pub fn caches() -> Vec<(CacheShape, Append, Problem)> {
    let mut all = Vec::new();
    let plain = CacheShape::new(3, 2, 40, 12).value_dim(7);
    for pool in [Pool::Buffer, Pool::Texture] {
        for element in [Element::F32, Element::F16, Element::Bf16, Element::Int8] {
            for shape in [plain, plain.paged(8, 11)] {
                let cache = shape.element(element).pool(pool);
                let rotary = Rotary::new(4, 64, Pairing::Halves);
                let append = Append::new(cache, 5).element(element);
                let append = if element == Element::Int8 { Append::new(cache, 5) } else { append };
                let problem = cache.problem(6, 5).lse();
                all.push((cache, append.clone(), problem.clone()));
                all.push((cache, append.rotary(rotary).queries(6), problem.weights()));
            }
        }
    }
    all
}
