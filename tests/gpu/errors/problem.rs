//! What is wrong with a problem before there are data or a device: one answer from everyone.

use wgpu_attention::{
    Align, Band, BiasLayout, Choice, Error, Layout, Method, Operand, Problem, Shape, Tile, cpu,
};

use super::{assert_same, empty, good, gpu, tile};
use crate::program::Program;

const SHAPE: Shape = Shape { q_len: 5, ..Shape::self_attention(2, 4, 7, 8) };

fn size(what: &'static str, need: &'static str, got: u128) -> Error {
    Error::Size { what, need, got }
}

fn stride(operand: Operand, need: &'static str, got: u32) -> Error {
    Error::Stride { operand, need, got }
}

/// Every way in gives the same error for a wrong problem.
fn refused(name: &str, problem: &Problem, want: &Error) {
    let (gpu, tile) = (gpu(), Tile { queries: 32, keys: 32 });
    let got = [
        ("validate", problem.validate().err()),
        ("cpu::attention", cpu::attention(problem, empty()).err()),
        ("cpu::flash", cpu::flash(problem, empty(), tile, Some(64)).err()),
        ("cpu::row", cpu::row(problem, empty(), [0; 3]).err()),
        ("Gpu::attention", gpu.attention(problem, empty()).err()),
        ("Attention::plan", gpu.planner().plan(problem).err()),
        ("staged", gpu.planner().plan_with(problem, Choice::method(Method::Staged)).err()),
    ];
    for (whose, got) in got {
        let name = format!("{name}, {whose}");
        assert_same(&name, &got.unwrap_or_else(|| panic!("{name}: accepted")), want);
    }
}

fn all(wrong: Vec<(&str, Problem, Error)>) {
    wrong.iter().for_each(|(name, problem, want)| refused(name, problem, want));
    good(&gpu());
    Program::shared().check();
    println!("{} wrong problems", wrong.len());
}

#[test]
fn sizes() {
    let one = "at least 1";
    let tokens = "at most 2^30";
    let of = |shape: Shape| Problem::new(shape);
    let many = (1u32 << 30) + 1;
    all(vec![
        ("head_dim", of(Shape { head_dim: 0, ..SHAPE }), size("head_dim", one, 0)),
        ("value_dim", of(SHAPE.value_dim(0)), size("value_dim", one, 0)),
        ("q_heads", of(Shape { q_heads: 0, ..SHAPE }), size("q_heads", one, 0)),
        ("kv_heads", of(SHAPE.kv_heads(0)), size("kv_heads", one, 0)),
        (
            "nothing at all",
            of(Shape { batch: 0, q_len: 0, kv_len: 0, head_dim: 0, ..SHAPE }),
            size("head_dim", one, 0),
        ),
        ("q_len", of(Shape { q_len: many, ..SHAPE }), size("q_len", tokens, many.into())),
        ("kv_len", of(SHAPE.kv_len(u32::MAX)), size("kv_len", tokens, u32::MAX.into())),
    ]);
}

#[test]
fn products_and_offsets_that_overflow() {
    let need = "at most 2^32 elements from the first to the last one used";
    let past = 1u128 << 32;
    let repeated = Layout { offset: 0, batch: 0, head: 0, token: 0 };
    let far = Layout::head_major(4, 5, 8).at(u32::MAX);
    let wide = Layout { token: u32::MAX, ..repeated };
    let long = Shape { q_len: (1 << 15) + 1, ..Shape::self_attention(1, 4, 1 << 15, 1) };
    let biased = Shape::self_attention(1, 128, 8192, 1);
    let far_bias = BiasLayout { offset: u32::MAX, key: 1, ..Default::default() };
    let of = |shape: Shape| Problem::new(shape);
    all(vec![
        ("q", of(Shape::self_attention(1, 64, (1 << 20) + 1, 64)), size("q", need, past + 64 * 64)),
        (
            "k alone",
            of(SHAPE.kv_len(1 << 30)).layout(Operand::V, repeated),
            size("k", need, (2 * 4 * 8) << 30),
        ),
        ("offset", of(SHAPE).layout(Operand::Q, far), size("q", need, past - 1 + 320)),
        ("output offset", of(SHAPE).layout(Operand::O, far), size("o", need, past - 1 + 320)),
        ("stride", of(SHAPE).layout(Operand::V, wide), size("v", need, (past - 1) * 6 + 8)),
        ("bias offset", of(SHAPE).bias(far_bias), size("bias", need, past - 1 + 7)),
        ("scores", of(long).scores(), size("scores", need, past + (4 << 15))),
        ("weights", of(long).weights(), size("weights", need, past + (4 << 15))),
        ("bias shape", of(biased).bias_shape(&[128, 8192, 8192]), size("bias", need, 2 * past)),
    ]);
}

/// Whatever the numbers, an answer, the same from both, and no panic.
#[test]
fn absurd_numbers() {
    let (most, one) = (u32::MAX, Shape::self_attention(1, 1, 1, 1));
    let shapes = [
        Shape { batch: most, q_heads: most, kv_heads: most, head_dim: most, ..one },
        Shape { batch: most, q_len: 1 << 30, kv_len: 1 << 30, value_dim: most, ..one },
        Shape { batch: most, q_heads: most, ..one },
        Shape { batch: 1 << 16, q_heads: 1 << 16, kv_heads: 1 << 16, ..one },
        Shape { q_len: 1 << 30, kv_len: 1 << 30, head_dim: 4, value_dim: 4, ..one },
    ];
    let wild = Layout { offset: most, batch: most, head: most, token: most };
    let gpu = gpu();
    for shape in shapes {
        let full = [shape.batch, shape.q_heads, shape.q_len, shape.kv_len];
        for operand in [Operand::Q, Operand::O, Operand::Lse, Operand::Weights] {
            let problem = Problem::new(shape).lse().scores().weights().bias_shape(&full);
            let problem = problem.layout(operand, wild);
            for problem in [problem.clone(), problem.arena()] {
                let want = problem.validate().expect_err("far too large");
                let got = gpu.attention(&problem, empty()).expect_err("far too large");
                assert_same("absurd", &got, &want);
                assert!(problem.elements(operand) > 0);
            }
        }
    }
    good(&gpu);
}

#[test]
fn heads_alignment_values() {
    let scale = "a finite number";
    let cap = "a finite number, positive or 0 for none";
    let value = |what, need, got| Error::Value { what, need, got };
    let left = Band { left: Some(3), right: None };
    let mut wrong = vec![
        (
            "more kv heads",
            Problem::new(SHAPE.kv_heads(8)),
            Error::HeadGroups { q_heads: 4, kv_heads: 8 },
        ),
        (
            "heads that do not divide",
            Problem::new(SHAPE.kv_heads(3)),
            Error::HeadGroups { q_heads: 4, kv_heads: 3 },
        ),
        ("causal", Problem::new(SHAPE).causal(), Error::Align { q_len: 5, kv_len: 7 }),
        ("left", Problem::new(SHAPE).band(left), Error::Align { q_len: 5, kv_len: 7 }),
    ];
    for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        wrong.push(("scale", Problem::new(SHAPE).scale(x), value("scale", scale, x)));
        wrong.push(("softcap", Problem::new(SHAPE).softcap(x), value("softcap", cap, x)));
    }
    wrong.push(("softcap", Problem::new(SHAPE).softcap(-1.0), value("softcap", cap, -1.0)));
    all(wrong);
    for right in [
        Problem::new(SHAPE).causal().align(Align::TopLeft),
        Problem::new(SHAPE).causal().align(Align::Shift(i32::MIN)),
        Problem::new(SHAPE).band(left).align(Align::Shift(i32::MAX)),
        Problem::new(SHAPE).scale(0.0).softcap(0.0),
        Problem::new(SHAPE).scale(-f32::MAX).softcap(f32::MIN_POSITIVE),
    ] {
        right.validate().expect("legal");
        gpu().planner().plan(&right).expect("a plan");
    }
}

#[test]
fn layouts() {
    let apart = "strides that keep its written rows apart";
    let key = "a key stride of 0 or 1";
    let head_major = Layout::head_major(4, 5, 8);
    let own = |operand, layout| Problem::new(SHAPE).lse().scores().layout(operand, layout);
    let overlap = |operand, other| Error::Overlap {
        operand,
        other,
        need: "disjoint elements within the arena",
    };
    let broadcast = |got: &[u32]| Error::Broadcast {
        operand: Operand::Bias,
        need: [2, 4, 5, 7],
        got: got.to_vec(),
    };
    let biased = |shape: &[u32]| Problem::new(SHAPE).bias_shape(shape);
    // Q, K, V at 0, 400, 1000, each with room; O and LSE where the case says.
    let arena = |o: u32, lse: u32| {
        Problem::new(SHAPE)
            .arena()
            .lse()
            .layout(Operand::Q, head_major)
            .layout(Operand::K, Layout::head_major(4, 7, 8).at(400))
            .layout(Operand::V, Layout::head_major(4, 7, 8).at(1000))
            .layout(Operand::O, head_major.at(o))
            .layout(Operand::Lse, Layout::head_major(4, 5, 1).at(lse))
    };
    all(vec![
        ("o head", own(Operand::O, Layout { head: 0, ..head_major }), stride(Operand::O, apart, 0)),
        (
            "o token",
            own(Operand::O, Layout { token: 7, ..head_major }),
            stride(Operand::O, apart, 7),
        ),
        (
            "o batch",
            own(Operand::O, Layout { batch: 159, ..head_major }),
            stride(Operand::O, apart, 159),
        ),
        (
            "lse",
            own(Operand::Lse, Layout { offset: 0, batch: 20, head: 4, token: 1 }),
            stride(Operand::Lse, apart, 4),
        ),
        (
            "scores",
            own(Operand::Scores, Layout { offset: 0, batch: 140, head: 35, token: 6 }),
            stride(Operand::Scores, apart, 6),
        ),
        (
            "bias key",
            Problem::new(SHAPE).bias(BiasLayout { key: 2, ..Default::default() }),
            stride(Operand::Bias, key, 2),
        ),
        (
            "a layout for the bias",
            Problem::new(SHAPE).bias_shape(&[7]).layout(Operand::Bias, head_major),
            Error::Unexpected { operand: Operand::Bias },
        ),
        (
            "a layout for the arena",
            Problem::new(SHAPE).layout(Operand::Arena, head_major),
            Error::Unexpected { operand: Operand::Arena },
        ),
        ("bias of 6 keys", biased(&[6]), broadcast(&[6])),
        ("bias of 0 keys", biased(&[0]), broadcast(&[0])),
        ("transposed bias", biased(&[7, 5]), broadcast(&[7, 5])),
        ("bias per kv head", biased(&[2, 2, 5, 7]), broadcast(&[2, 2, 5, 7])),
        ("five axes", biased(&[1, 2, 4, 5, 7]), broadcast(&[1, 2, 4, 5, 7])),
        ("o on q", arena(0, 2000), overlap(Operand::O, Operand::Q)),
        ("o on k", arena(399, 2000), overlap(Operand::O, Operand::K)),
        ("o on v", arena(1447, 2000), overlap(Operand::O, Operand::V)),
        ("lse in o", arena(1448, 1500), overlap(Operand::O, Operand::Lse)),
        ("lse on q", arena(1448, 319), overlap(Operand::Lse, Operand::Q)),
        ("all at 0", Problem::new(SHAPE).arena(), overlap(Operand::O, Operand::Q)),
    ]);
    for right in [
        arena(1448, 1768),
        arena(1448, 320),
        biased(&[1]),
        biased(&[]),
        biased(&[1, 1, 5, 1]),
        own(Operand::Q, Layout::default()),
    ] {
        right.validate().expect("legal");
        gpu().planner().plan(&right).expect("a plan");
    }
}

/// Tiles by hand, on the CPU and on the device.
#[test]
fn tiles() {
    let need = "a multiple of 4 from 4 to 1024";
    let problem = Problem::new(SHAPE);
    let data = crate::support::Data::new(&problem, 1);
    let gpu = gpu();
    for (queries, keys, what, got) in [
        (6, 32, "tile queries", 6u32),
        (0, 32, "tile queries", 0),
        (1028, 32, "tile queries", 1028),
        (32, 30, "tile keys", 30),
        (32, 0, "tile keys", 0),
        (32, u32::MAX - 3, "tile keys", u32::MAX - 3),
    ] {
        let want = size(what, need, got.into());
        let by_hand = Tile { queries, keys };
        let errors = [
            cpu::flash(&problem, data.inputs(), by_hand, None).expect_err("no tile"),
            gpu.planner().plan_with(&problem, tile(queries, keys)).expect_err("no tile"),
            gpu.attention_with(&problem, data.inputs(), tile(queries, keys)).expect_err("no tile"),
        ];
        errors.iter().for_each(|error| assert_same("tile", error, &want));
    }
    let limit = |what, need, got| Error::Limit { what, need, got };
    let threads = "max_compute_invocations_per_workgroup";
    let memory = "max_compute_workgroup_storage_size";
    for (queries, keys, want) in [
        (1024, 1024, limit(threads, 65_536, 256)),
        (64, 68, limit(threads, 272, 256)),
        // P and a tile of a quad a key, and the maxima of four keys each.
        (4, 1024, limit(memory, 16 * (1024 + 1024 + 256 + 1), 16 << 10)),
    ] {
        let error = gpu.planner().plan_with(&problem, tile(queries, keys));
        assert_same("large tile", &error.expect_err("too large"), &want);
    }
    gpu.attention_with(&problem, data.inputs(), tile(12, 20)).expect("an odd tile is legal");

    // The fused kernel forms no scores and no weights.
    for (problem, operand) in [
        (Problem::new(SHAPE).scores(), Operand::Scores),
        (Problem::new(SHAPE).weights().lse(), Operand::Weights),
    ] {
        let error = gpu.planner().plan_with(&problem, Choice::method(Method::Flash));
        assert_same("stored", &error.expect_err("no scores"), &Error::Unexpected { operand });
        gpu.planner().plan(&problem).expect("staged");
        let tiled = Choice::default().with_tile(Tile { queries: 8, keys: 8 });
        let error = gpu.planner().plan_with(&problem, tiled).expect_err("no tiles");
        assert_same("tiles", &error, &size("tile", "none, with this method", 8));
    }
    good(&gpu);
    Program::shared().check();
}
