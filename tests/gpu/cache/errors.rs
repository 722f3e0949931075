//! Every mistake with a cache is a value; nothing has changed after it and the next right call works.

use wgpu_attention::{
    Append, CacheShape, Element, Error, Group, Inputs, KvCache, Layout, Operand, Pairing, Problem,
    Rotary, Shape, cpu,
};

use super::both::{Both, Setup};
use crate::errors::{assert_same, gpu};
use crate::program::Program;

fn size(what: &'static str, need: &'static str, got: u128) -> Error {
    Error::Size { what, need, got }
}

fn unexpected(operand: Operand) -> Error {
    Error::Unexpected { operand }
}

const RANGE: &str = "from 1 to 2^30";
const SHAPE: CacheShape = CacheShape::new(2, 2, 12, 6).value_dim(5).paged(4, 5);

#[test]
fn shapes() {
    let most = 1 << 30;
    let plain = CacheShape::new(1, 1, 1, 1);
    for (shape, want) in [
        (CacheShape::new(0, 1, 1, 1), size("sequences", RANGE, 0)),
        (CacheShape::new(1, most + 1, 1, 1), size("kv_heads", RANGE, (1 << 30) + 1)),
        (CacheShape::new(1, 1, 0, 1), size("capacity", RANGE, 0)),
        (CacheShape::new(1, 1, 1, 0), size("head_dim", RANGE, 0)),
        (plain.value_dim(u32::MAX), size("value_dim", RANGE, u32::MAX.into())),
        (plain.paged(0, 1), size("page_tokens", RANGE, 0)),
        (plain.paged(1, 0), size("pages", RANGE, 0)),
        (CacheShape::new(1, 1, most, 4), size("texels of the cache", "below 2^31", 1 << 31)),
        (
            CacheShape::new(1 << 16, 1, 1 << 15, 1).paged(1, 1),
            size("words of the cache", "below 2^31", (1 << 31) + 5 * (1 << 16)),
        ),
    ] {
        let name = format!("{shape:?}");
        let program = Program::shared();
        assert_same(&name, &shape.validate().expect_err(&name), &want);
        assert_eq!(cpu::KvCache::new(shape), Err(want.clone()));
        assert_eq!(KvCache::new(&program.attention, shape).map(|_| ()), Err(want.clone()));
        assert_eq!(program.attention.plan_unpack(shape).map(|_| ()), Err(want.clone()));
        assert_eq!(Append::new(shape, 1).validate(), Err(want));
        program.check();
    }
}

#[test]
fn appends() {
    let append = || Append::new(SHAPE, 3);
    let rotary = |pairs, positions| Rotary::new(pairs, positions, Pairing::Halves);
    let pairs = "1 to head_dim / 2";
    let odd = Layout { offset: 1, batch: 72, head: 18, token: 6 };
    let queries = || append().rotary(rotary(3, 12)).queries(4);
    let int8 = "f32, f16 or bf16; only a cache holds int8";
    for (name, append, want) in [
        ("no pairs", append().rotary(rotary(0, 12)), size("rotary pairs", pairs, 0)),
        ("pairs", append().rotary(rotary(4, 12)), size("rotary pairs", pairs, 4)),
        ("many pairs", append().rotary(rotary(1 << 31, 12)), size("rotary pairs", pairs, 1 << 31)),
        (
            "positions",
            append().rotary(rotary(3, 11)),
            size("rotary positions", "at least the cache's capacity", 11),
        ),
        (
            "table",
            append().rotary(rotary(3, u32::MAX)),
            size("rotary", "at most 2^32 numbers", 6 * u128::from(u32::MAX)),
        ),
        ("no rotary", append().queries(4), Error::Missing { operand: Operand::Rotary }),
        ("bias layout", append().layout(Operand::Bias, odd), unexpected(Operand::Bias)),
        ("O", append().layout(Operand::O, odd), unexpected(Operand::O)),
        (
            "int8",
            append().element(Element::Int8),
            Error::Element { operand: Operand::K, need: int8, got: Element::Int8 },
        ),
        (
            "rows that overlap",
            queries().layout(Operand::Rotated, Layout { batch: 36, ..odd }),
            Error::Stride {
                operand: Operand::Rotated,
                need: "strides that keep its written rows apart",
                got: 36,
            },
        ),
        (
            "heads",
            append().rotary(rotary(3, 12)).queries(3),
            Error::HeadGroups { q_heads: 3, kv_heads: 2 },
        ),
    ] {
        let error = append.validate().expect_err(name);
        assert_same(name, &error, &want);
        let planned = Program::shared().attention.plan_append(&append).map(|_| ());
        assert_eq!(planned, Err(want), "{name}");
    }
    // An odd start is wrong for packed 16-bit queries only.
    let packed = queries().layout(Operand::Rotated, odd);
    let plan = |append: &Append| Program::shared().attention.plan_append(append).map(|_| ());
    assert_eq!(plan(&packed), Ok(()));
    let error = plan(&packed.element(Element::F16)).expect_err("two rows in a word");
    let operand = Operand::Rotated;
    assert!(matches!(error, Error::Stride { operand: o, got: 1, .. } if o == operand), "{error:?}");
}

#[test]
fn problems() {
    let good = SHAPE.problem(4, 3);
    let other = |change: fn(&mut Shape)| {
        let mut shape = good.shape();
        change(&mut shape);
        Problem::new(shape).cached(SHAPE)
    };
    let own = "queries of 16 or 32 bits and the cache's own type";
    let element = |got| Error::Element { operand: Operand::Cache, need: own, got };
    for (name, problem, want) in [
        ("batch", other(|s| s.batch = 3), size("batch", "the cache's sequences", 3)),
        ("kv_heads", other(|s| s.kv_heads = 1), size("kv_heads", "the cache's", 1)),
        ("head_dim", other(|s| s.head_dim = 5), size("head_dim", "the cache's", 5)),
        ("value_dim", other(|s| s.value_dim = 6), size("value_dim", "the cache's", 6)),
        ("kv_len", other(|s| s.kv_len = 13), size("kv_len", "at most the cache's capacity", 13)),
        ("K", good.clone().layout(Operand::K, Layout::default()), unexpected(Operand::K)),
        ("V", good.clone().layout(Operand::V, Layout::default()), unexpected(Operand::V)),
        ("packed", good.clone().packed(2), unexpected(Operand::CuSeqlensKv)),
        ("keys", good.clone().element(Group::Keys, Element::F16), element(Element::F16)),
        ("queries", good.clone().element(Group::Queries, Element::Int8), element(Element::F32)),
        (
            "no cache",
            Problem::new(good.shape()).element(Group::Keys, Element::Int8),
            Error::Element {
                operand: Operand::K,
                need: "f32, f16 or bf16; only a cache holds int8",
                got: Element::Int8,
            },
        ),
        ("its own rules", SHAPE.problem(4, 3).cached(SHAPE.paged(4, 0)), size("pages", RANGE, 0)),
    ] {
        assert_same(name, &problem.validate().expect_err(name), &want);
        let planned = Program::shared().attention.plan(&problem).map(|_| ());
        assert_eq!(planned, Err(want), "{name}");
    }
    // Host calls have no cache.
    let empty = || Inputs::<f32>::new(&[], &[], &[]);
    let cache = unexpected(Operand::Cache);
    assert_eq!(cpu::attention(&good, empty()), Err(cache.clone()));
    assert_eq!(gpu().attention(&good, empty()).map(|_| ()), Err(cache));
}

/// Operations of the host's; each is followed by the next right one.
#[test]
fn operations() {
    let program = Program::shared();
    let queue = &program.queue;
    let setup = Setup::new(SHAPE, 4, 5);
    let mut both = Both::new(program, &program.attention, &setup);
    both.step(&[5, 5]).expect("room");
    let sequence = |got| size("sequence", "a sequence of the cache", got);
    let full = |what, need, got| Error::Full { what, need, got };
    let tokens = "at most the tokens that have pages";
    let length = |got| Error::Length { operand: Operand::Cache, need: 2, got };
    type Wrong = fn(&mut KvCache, &wgpu::Queue) -> Result<(), Error>;
    let wrong: [(Wrong, Error); 17] = [
        (|c, q| c.extend(q, &[1]), length(1)),
        (|c, q| c.extend(q, &[]), length(0)),
        (|c, q| c.extend(q, &[0, 8]), full("tokens of a sequence", 13, 12)),
        (|c, q| c.extend(q, &[u32::MAX, 0]), full("tokens of a sequence", (1 << 32) + 4, 12)),
        (|c, q| c.extend(q, &[4, 4]), full("pages", 2, 1)),
        (|c, q| c.reserve(q, 2, 1), sequence(2)),
        (|c, q| c.reserve(q, 0, 13), full("tokens of a sequence", 13, 12)),
        (|c, q| c.set_len(q, u32::MAX, 1), sequence(u32::MAX.into())),
        (|c, q| c.set_len(q, 1, 9), size("length", tokens, 9)),
        (|c, q| c.share(q, 2, 0, 1), sequence(2)),
        (|c, q| c.share(q, 0, 2, 1), sequence(2)),
        (|c, q| c.share(q, 0, 1, 6), size("shared tokens", "at most the other sequence's", 6)),
        (|c, q| c.share(q, 0, 1, 1), size("pages of the sequence", "none yet", 2)),
        (|c, q| c.share(q, 0, 0, 1), size("pages of the sequence", "none yet", 2)),
        (|c, q| c.set_pages(q, 2, &[4], 1), sequence(2)),
        (|c, _| c.len(2).map(|_| ()), sequence(2)),
        (|c, _| c.pages(2).map(|_| ()), sequence(2)),
    ];
    for (at, (wrong, want)) in wrong.into_iter().enumerate() {
        let before = (0..2).map(|s| (both.cache.len(s), both.cache.pages(s).map(<[u32]>::to_vec)));
        let before = (before.collect::<Vec<_>>(), both.cache.free_pages());
        let words = program.read(both.cache.words());
        assert_eq!(wrong(&mut both.cache, queue), Err(want), "{at}");
        let after = (0..2).map(|s| (both.cache.len(s), both.cache.pages(s).map(<[u32]>::to_vec)));
        assert_eq!((after.collect::<Vec<_>>(), both.cache.free_pages()), before, "{at}");
        let bits = |words: Vec<f32>| words.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(program.read(both.cache.words())), bits(words), "{at}");
        both.step(&[0, 1]).and_then(|()| both.set_len(1, 5)).expect("the next right call");
        both.step(&[0, 0]).expect("nothing more");
        assert!(both.rows_error(&program.attention).0 <= 1e-6, "{at}");
        assert!(both.errors()[0] <= 4e-6, "{at}");
    }
    let mut plain = KvCache::new(&program.attention, CacheShape::new(2, 1, 4, 1)).expect("a cache");
    let paged = size("page_tokens", "a paged cache", 0);
    assert_eq!(plain.share(queue, 0, 1, 0), Err(paged.clone()));
    assert_eq!(plain.set_pages(queue, 0, &[], 0), Err(paged));
    assert_eq!(plain.set_len(queue, 0, 5), Err(size("length", tokens, 5)));
    assert_eq!((plain.free_pages(), plain.pages(0)), (0, Ok(&[][..])));
}

/// The twin's own.
#[test]
fn the_twin() {
    let mut twin = cpu::KvCache::new(SHAPE).expect("a twin");
    let append = Append::new(SHAPE, 3);
    let rows = |n: u64| vec![1.0f32; n as usize];
    let (k, v) = (rows(append.elements(Operand::K)), rows(append.elements(Operand::V)));
    let inputs = cpu::AppendInputs { k: &k, v: &v, q: None, rotary: None };
    let length = |operand, need: usize, got: usize| {
        Err(Error::Length { operand, need: need as u64, got: got as u64 })
    };
    let cut = cpu::AppendInputs { k: &k[1..], ..inputs };
    assert_eq!(twin.append(&append, &[1, 1], cut), length(Operand::K, k.len(), k.len() - 1));
    let cut = cpu::AppendInputs { v: &[], ..inputs };
    assert_eq!(twin.append(&append, &[1, 1], cut), length(Operand::V, v.len(), 0));
    assert_eq!(twin.append(&append, &[1], inputs), length(Operand::Cache, 2, 1));
    for (operand, more) in [
        (Operand::Q, cpu::AppendInputs { q: Some(&k), ..inputs }),
        (Operand::Rotary, cpu::AppendInputs { rotary: Some(&k), ..inputs }),
    ] {
        assert_eq!(twin.append(&append, &[1, 1], more), Err(unexpected(operand)));
    }
    let turning = append.clone().rotary(Rotary::new(1, 12, Pairing::Halves));
    let missing = Err(Error::Missing { operand: Operand::Rotary });
    assert_eq!(twin.append(&turning, &[1, 1], inputs), missing);
    let count = size("count", "at most the append's tokens", 4);
    assert_eq!(twin.append(&append, &[4, 0], inputs), Err(count));
    assert_eq!((twin.lens(), twin.k().iter().sum::<f32>()), (&[0, 0][..], 0.0));
    for _ in 0..4 {
        twin.append(&append, &[3, 1], inputs).expect("room");
    }
    let full = Error::Full { what: "tokens of a sequence", need: 13, got: 12 };
    assert_eq!(twin.append(&append, &[1, 1], inputs), Err(full));
    assert_eq!(twin.lens(), [12, 4]);
    let sequence = Err(size("sequence", "a sequence of the cache", 2));
    assert_eq!(twin.truncate(2, 0), sequence);
    assert_eq!(twin.share(0, 2, 0), sequence);
    let shorter = size("length", "at most the sequence's tokens", 5);
    assert_eq!(twin.truncate(1, 5), Err(shorter));
    let fewer = size("shared tokens", "at most the other sequence's", 5);
    assert_eq!(twin.share(1, 0, 5), Err(fewer));
    assert_eq!(twin.share(0, 1, 5), Err(size("tokens of the sequence", "none yet", 4)));
}
