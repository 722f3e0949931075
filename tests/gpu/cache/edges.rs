//! Caches of the least and oddest sizes, and new rows in every type and layout.

use wgpu_attention::half::{bf16, f16};
use wgpu_attention::{
    Append, Buffers, CacheShape, Element, KvCache, Layout, Operand, Pairing, Pool, Rotary, cpu,
};

use super::both::{Both, Setup};
use crate::program::{Program, USAGE};
use crate::support::{max_error, normal};

const ALL: [Element; 4] = [Element::F32, Element::F16, Element::Bf16, Element::Int8];

/// Head dims of 1, 3 and 130, odd value dims, one sequence or 70, room for one token, pages of one
/// and pages longer than the capacity.
#[test]
#[ignore = "exhaustive"]
fn exhaustive_odd_sizes() {
    let program = Program::shared();
    let shapes = [
        CacheShape::new(1, 1, 1, 1),
        CacheShape::new(1, 2, 5, 3).value_dim(1),
        CacheShape::new(2, 1, 6, 130).value_dim(67),
        CacheShape::new(70, 1, 4, 4).value_dim(3),
    ];
    for (at, shape) in shapes.into_iter().enumerate() {
        let pages = [(1, shape.sequences * shape.capacity), (shape.capacity + 3, shape.sequences)];
        let paged = pages.map(|(tokens, pages)| shape.paged(tokens, pages));
        for (pool, element) in [(Pool::Buffer, ALL[at]), (Pool::Texture, ALL[(at + 3) % 4])] {
            for shape in [shape, paged[0], paged[1]] {
                let shape = shape.pool(pool).element(element);
                let setup = Setup::new(shape, 2 * shape.kv_heads, shape.capacity.min(3));
                let mut both = Both::new(program, &program.attention, &setup);
                let mut left = shape.capacity;
                while left > 0 {
                    let most = left.min(setup.tokens);
                    let counts: Vec<_> =
                        (0..shape.sequences).map(|s| most - s % 2 * most / 2).collect();
                    both.step(&vec![0; counts.len()]).expect("nothing");
                    both.step(&counts).expect("room");
                    left -= most;
                    let (rows, lens) = both.rows_error(&program.attention);
                    let int8 = element == Element::Int8;
                    assert!(rows <= if int8 { 0.05 } else { 1e-6 }, "{shape:?}: {rows}");
                    assert_eq!(lens, both.twin.lens(), "{shape:?}");
                    let [o, lse] = both.errors();
                    assert!(
                        o.max(lse) <= if int8 { 0.03 } else { 4e-6 },
                        "{shape:?}: {o:e} {lse:e}"
                    );
                    both.conserved();
                }
            }
        }
    }
}

/// An append of no tokens binds, records and does nothing.
#[test]
fn no_tokens() {
    let program = Program::shared();
    let shape = CacheShape::new(2, 1, 4, 4).paged(2, 4);
    let cache = KvCache::new(&program.attention, shape).expect("a cache");
    let plan = program.attention.plan_append(&Append::new(shape, 0)).expect("a plan");
    assert!(plan.describe().is_empty());
    let [k, v] = [0; 2].map(|_| program.empty(4, USAGE));
    let given = Buffers::default().with(Operand::K, &k).with(Operand::V, &v);
    let bound = plan.bind(given.cache(&cache)).expect("bound");
    let before = program.read(cache.words());
    program.submit(|encoder| bound.encode_in(encoder));
    assert_eq!(
        program.read(cache.words()).iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
        before.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    );
}

/// New Q, K and V packed in one token-major buffer, `[sequence, token, (q, k, v), head, dim]`, f32,
/// f16 and bf16, into caches of every type.
#[test]
fn packed_rows() {
    let (sequences, tokens, q_heads, kv_heads, dim) = (2, 3, 4, 2, 6);
    let token = (q_heads + 2 * kv_heads) * dim;
    let at = |offset| Layout { offset, batch: tokens * token, head: dim, token };
    // So that bindings begin past the buffer's start, too.
    let start = 400;
    let numbers = start + sequences * tokens * token;
    for element in [Element::F32, Element::F16, Element::Bf16] {
        for stored in ALL {
            let shape = CacheShape::new(sequences, kv_heads, 8, dim).element(stored).paged(3, 6);
            let append = Append::new(shape, tokens)
                .element(element)
                .rotary(Rotary::new(2, 8, Pairing::Adjacent))
                .queries(q_heads)
                .layout(Operand::Q, at(start))
                .layout(Operand::K, at(start + q_heads * dim))
                .layout(Operand::V, at(start + (q_heads + kv_heads) * dim))
                .layout(Operand::Rotated, Layout::token_major(q_heads, tokens, dim).at(500));
            let all = normal(numbers as usize, 7);
            match element {
                Element::F32 => run(&append, shape, &all, bytemuck::cast_slice(&all), 1e-6),
                Element::F16 => {
                    let all: Vec<_> = all.iter().map(|&x| f16::from_f32(x)).collect();
                    run(&append, shape, &all, bytemuck::cast_slice(&all), 2e-3);
                }
                _ => {
                    let all: Vec<_> = all.iter().map(|&x| bf16::from_f32(x)).collect();
                    run(&append, shape, &all, bytemuck::cast_slice(&all), 2e-2);
                }
            }
        }
    }
}

/// Two appends of the same rows, on both; rows may be off by a rounding of the cache's type, rotated
/// queries by one of theirs.
fn run<T: wgpu_attention::Scalar + bytemuck::Pod>(
    append: &Append,
    shape: CacheShape,
    all: &[T],
    bytes: &[u8],
    rounding: f32,
) {
    let program = Program::shared();
    let attention = &program.attention;
    let cache = KvCache::new(attention, shape);
    let mut cache = cache.expect("a cache");
    let mut twin = cpu::KvCache::new(shape).expect("a twin");
    let table = Rotary::new(2, 8, Pairing::Adjacent).table(100.0);
    let rows = program.empty(bytes.len() as u64, USAGE);
    program.queue.write_buffer(&rows, 0, bytes);
    let (rotary, rotated) = (program.buffer(&table), append.bytes(Operand::Rotated));
    let rotated = program.empty(rotated, USAGE);
    let mut given = Buffers::default().with(Operand::Rotated, &rotated);
    for operand in [Operand::Q, Operand::K, Operand::V] {
        given = given.with(operand, &rows);
    }
    let plan = attention.plan_append(append).expect("a plan");
    let bound = plan.bind(given.with(Operand::Rotary, &rotary).cache(&cache)).expect("bound");
    for counts in [[3, 1], [2, 3]] {
        cache.extend(&program.queue, &counts).expect("room");
        program.submit(|encoder| bound.encode_in(encoder));
        let inputs = cpu::AppendInputs { k: all, v: all, q: Some(all), rotary: Some(&table) };
        let want = twin.append(append, &counts, inputs).expect("room").expect("queries");
        let words = program.read(&rotated);
        let got: &[T] = &bytemuck::cast_slice(&words)[..want.len()];
        let plain = |x: &[T]| x.iter().map(|x| x.to_f64() as f32).collect::<Vec<_>>();
        let error = max_error(&plain(got), &plain(&want));
        assert!(error <= 4.0 * rounding, "{append:?}: rotated off by {error}");
    }
    let unpack = attention.plan_unpack(shape).expect("a plan");
    let out = [twin.k(), twin.v()].map(|x| program.empty(4 * x.len() as u64, USAGE));
    let given = Buffers::default().with(Operand::K, &out[0]).with(Operand::V, &out[1]);
    let bound = unpack.bind(given.cache(&cache)).expect("bound");
    program.submit(|encoder| bound.encode_in(encoder));
    let most = match shape.element {
        Element::F32 => 1e-6,
        Element::F16 => 2e-3,
        Element::Bf16 => 2e-2,
        _ => 4e-2,
    };
    for (got, want) in out.iter().zip([twin.k(), twin.v()]) {
        let error = max_error(&program.read(got), want);
        assert!(error <= most, "{append:?}: rows off by {error}");
    }
}
