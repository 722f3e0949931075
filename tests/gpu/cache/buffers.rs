//! Wrong buffers and caches are values, and so is what a device's limits do not allow.

use wgpu_attention::{
    Append, Buffers, CacheShape, Error, KvCache, Operand, Pairing, Pool, Problem, Rotary, Shape,
};

use crate::errors::{assert_same, wrong_buffers};
use crate::program::{Program, USAGE};

const SHAPE: CacheShape = CacheShape::new(2, 2, 12, 6).value_dim(5).paged(4, 5);

fn unexpected(operand: Operand) -> Error {
    Error::Unexpected { operand }
}

/// Every buffer of an append and an unpacking, and the cache itself.
#[test]
fn buffers() {
    let program = Program::shared();
    let attention = &program.attention;
    let cache = KvCache::new(attention, SHAPE).expect("a cache");
    let wider = KvCache::new(attention, SHAPE.paged(4, 6)).expect("a cache");
    let append = Append::new(SHAPE, 3).rotary(Rotary::new(2, 12, Pairing::Halves)).queries(2);
    let plan = attention.plan_append(&append).expect("a plan");
    let operands = [Operand::K, Operand::V, Operand::Q, Operand::Rotated, Operand::Rotary];
    let all = operands.map(|operand| program.empty(append.bytes(operand), USAGE));
    let given = || operands.iter().zip(&all).fold(Buffers::default(), |b, (&o, x)| b.with(o, x));
    let mut wrong = 0;
    for operand in operands {
        wrong += wrong_buffers(program, operand, [append.bytes(operand), 4], |buffer| {
            let others = operands.iter().zip(&all).filter(|(o, _)| **o != operand);
            let rest = others.fold(Buffers::default(), |b, (&o, x)| b.with(o, x)).cache(&cache);
            plan.bind(buffer.map_or(rest, |buffer| rest.with(operand, buffer))).map(|_| ())
        });
    }
    assert_eq!(wrong, 5 * 7);
    let missing = Error::Missing { operand: Operand::Cache };
    let [need, got] = [SHAPE, wider.shape()].map(|shape| shape.bytes());
    let length = Error::Length { operand: Operand::Cache, need, got };
    assert_eq!(plan.bind(given()).map(|_| ()), Err(missing.clone()));
    assert_eq!(plan.bind(given().cache(&wider)).map(|_| ()), Err(length.clone()));
    let more = given().cache(&cache).with(Operand::O, &all[0]);
    assert_eq!(plan.bind(more).map(|_| ()), Err(unexpected(Operand::O)));
    let need = "a buffer of its own, or Problem::arena for all operands but scratch";
    let same = given().cache(&cache).with(Operand::Rotated, &all[2]);
    let overlap = plan.bind(same).map(|_| ()).expect_err("Q is written");
    assert_eq!(overlap, Error::Overlap { operand: Operand::Rotated, other: Operand::Q, need });
    plan.bind(given().cache(&cache)).expect("right");

    let problem = SHAPE.problem(2, 3);
    let plan = attention.plan(&problem).expect("a plan");
    let o = program.empty(problem.bytes(Operand::O), USAGE);
    let none = Buffers::default().with(Operand::Q, &all[2]).with(Operand::O, &o);
    assert_eq!(plan.bind(none).map(|_| ()), Err(missing.clone()));
    assert_eq!(plan.bind(none.cache(&wider)).map(|_| ()), Err(length.clone()));
    let keys = none.cache(&cache).with(Operand::K, &all[0]);
    assert_eq!(plan.bind(keys).map(|_| ()), Err(unexpected(Operand::K)));
    plan.bind(none.cache(&cache)).expect("right");
    let plain = attention.plan(&Problem::new(Shape::self_attention(1, 1, 2, 2))).expect("a plan");
    let four = [0; 4].map(|_| program.empty(16, USAGE));
    let given = Buffers::new(&four[0], &four[1], &four[2], &four[3]);
    assert_eq!(plain.bind(given.cache(&cache)).map(|_| ()), Err(unexpected(Operand::Cache)));

    let unpack = attention.plan_unpack(SHAPE).expect("a plan");
    let rows = [6, 5].map(|dim| program.empty(4 * 2 * 2 * 12 * dim, USAGE));
    let given = Buffers::default().with(Operand::K, &rows[0]).with(Operand::V, &rows[1]);
    assert_eq!(unpack.bind(given).map(|_| ()), Err(missing));
    assert_eq!(unpack.bind(given.cache(&wider)).map(|_| ()), Err(length));
    let twice = given.with(Operand::V, &rows[0]).cache(&cache);
    let overlap = Error::Overlap { operand: Operand::K, other: Operand::V, need };
    assert_eq!(unpack.bind(twice).map(|_| ()), Err(overlap));
    unpack.bind(given.cache(&cache)).expect("right");
    program.check();
}

/// What a device's limits do not allow.
#[test]
fn limits() {
    let program = Program::shared();
    let limited = |change: fn(&mut wgpu::Limits)| {
        let mut limits = wgpu::Limits::default();
        change(&mut limits);
        program.neighbour(limits)
    };
    let limit = |what, need, got| Error::Limit { what, need, got };
    let new = |program: &Program, shape| KvCache::new(&program.attention, shape).map(|_| ());
    let small = limited(|limits| limits.max_texture_dimension_2d = 2048);
    let side = "max_texture_dimension_2d";
    let texture = CacheShape::new(1, 1, 8, 16).pool(Pool::Texture);
    let error = new(&small, texture).expect_err("too wide");
    assert_same(side, &error, &limit(side, 4096, 2048));
    assert_eq!(error.to_string(), "max_texture_dimension_2d: need 4096, the device allows 2048");
    assert_eq!(new(&small, texture.pool(Pool::Auto)), Ok(()), "a buffer");
    // 8192 + 1 rows of 4096 texels.
    let tall = CacheShape::new(1, 1, (8192 * 4096 + 4096) / 8, 16).pool(Pool::Texture);
    assert_eq!(new(program, tall), Err(limit(side, 8193, 8192)));
    let bytes = limited(|limits| limits.max_storage_buffer_binding_size = 1 << 12);
    let binding = "cache";
    let fits = CacheShape::new(1, 1, 32, 16).pool(Pool::Buffer);
    assert_eq!(new(&bytes, fits), Ok(()));
    let large = CacheShape::new(1, 1, 33, 16).pool(Pool::Buffer);
    assert_eq!(new(&bytes, large), Err(limit(binding, 33 * 128, 1 << 12)));
    let tables = CacheShape::new(300, 1, 1, 1).paged(1, 1).pool(Pool::Buffer);
    assert_eq!(new(&bytes, tables), Err(limit("tables of the cache", 4 * 1800, 1 << 12)));
    let copies = CacheShape::new(40, 1, 1, 16).paged(1, 1).pool(Pool::Buffer);
    assert_eq!(new(&bytes, copies), Err(limit("page copies of the cache", 40 * 128, 1 << 12)));
    let append = Append::new(fits, 65);
    let planned = bytes.attention.plan_append(&append).map(|_| ());
    assert_eq!(planned, Err(limit("k", 65 * 64, 1 << 12)));
    assert_eq!(new(&bytes, fits), Ok(()), "the next right call");
}
