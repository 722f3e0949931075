//! `broadcast`: how many rows a lane holds, where keys are copied, and what is refused.

use wgpu_attention::{
    Attention, CacheShape, Choice, Error, LoopLimit, Method, Options, Problem, Shape, Tile,
};

use wgpu_attention_support::lanes;

const CHOICE: Choice = Choice::method(Method::Broadcast);

/// Subgroups of so many lanes, on a driver with short loops, which compiles quickly, or another.
fn attention(lanes: [u32; 2], quick: bool) -> Attention {
    let device = lanes::device(&Default::default(), lanes);
    let loops = if quick { LoopLimit::Iterations(65_535) } else { LoopLimit::Unlimited };
    Attention::with(&device, Options::default().loop_limit(loops))
}

/// The table of docs/performance.md, from both sides of each step.
#[test]
fn rows_a_lane() {
    let tokens = |tokens: u32, dim: u32| Problem::new(Shape::self_attention(1, 8, tokens, dim));
    let cached = |keys: u32| CacheShape::new(1, 8, keys, 64).problem(8, 16);
    let cases = [
        (tokens(441, 64), true, 1),
        (tokens(442, 64), true, 2),
        (tokens(1397, 64), true, 2),
        (tokens(1398, 64), true, 4),
        (tokens(1249, 64), false, 1),
        (tokens(1250, 64), false, 2),
        (tokens(3952, 64), false, 2),
        (tokens(3953, 64), false, 4),
        // Causal calls are half the work.
        (tokens(624, 64).causal(), true, 1),
        (tokens(625, 64).causal(), true, 2),
        // Twice the quads a row: the next step of the table.
        (tokens(1398, 128), true, 2),
        // A cache is attended to again for each token.
        (cached(2441), true, 1),
        (cached(2442), true, 2),
        // No more lanes than rows.
        (Problem::new(Shape::self_attention(1, 8, 15, 64).kv_len(60_000)), true, 1),
    ];
    for (problem, quick, rows) in cases {
        let plan = attention([8, 8], quick).plan_with(&problem, CHOICE).expect("a plan");
        assert_eq!(plan.describe().tile, Tile { queries: 8 * rows, keys: 16 }, "{problem:?}");
    }
    let plan = attention([16, 16], true).plan_with(&tokens(443, 64), CHOICE).expect("a plan");
    assert_eq!(plan.describe().tile, Tile { queries: 32, keys: 16 });
}

#[test]
fn keys_are_copied_where_asked() {
    let attention = attention([8, 8], true);
    let problem = Problem::new(Shape::self_attention(1, 8, 100, 64));
    let kernels = |choice| {
        let plan = attention.plan_with(&problem, choice).expect("a plan");
        let kernels: Vec<_> = plan.describe().dispatches.iter().map(|d| d.kernel).collect();
        (kernels, plan.owned_bytes())
    };
    let (without, plain) = kernels(CHOICE.with_keys_in_texture(false));
    let (with, copied) = kernels(CHOICE.with_keys_in_texture(true));
    assert_eq!(without, ["broadcast"]);
    assert_eq!(with, ["pack", "broadcast"]);
    // 8 heads x 100 tokens x 32 texels of 16 bytes, in lines of 4096, and a uniform more.
    let texture = 7 * 4096 * 16;
    assert!((texture..texture + 1024).contains(&(copied - plain)), "{copied} - {plain}");
}

#[test]
fn refused() {
    let problem = Problem::new(Shape::self_attention(1, 8, 100, 64));
    let refused = |attention: &Attention, problem: &Problem, choice| {
        attention.plan_with(problem, choice).map(|plan| plan.method()).expect_err("an error")
    };
    let what = "subgroups of one size, with the feature SUBGROUP";
    let limit = Error::Limit { what, need: 1, got: 0 };
    let (plain, _queue) = wgpu::Device::noop(&Default::default());
    assert_eq!(refused(&Attention::new(&plain), &problem, CHOICE), limit);
    assert_eq!(refused(&attention([8, 32], true), &problem, CHOICE), limit);

    let eight = attention([8, 8], true);
    let paged = CacheShape::new(1, 8, 64, 64).paged(16, 4).problem(8, 16);
    let tile = |queries, keys| CHOICE.with_tile(Tile { queries, keys });
    for (problem, choice) in [
        (&problem, tile(4, 16)),
        (&problem, tile(12, 16)),
        (&problem, tile(24, 16)),
        (&problem, tile(64, 16)),
        (&problem, tile(8, 20)),
        (&paged, tile(8, 16)),
    ] {
        let error = refused(&eight, problem, choice);
        assert!(matches!(error, Error::Size { .. }), "{choice:?}: {error}");
    }
    let scores = refused(&eight, &problem.scores(), CHOICE);
    assert!(matches!(scores, Error::Unexpected { .. }), "{scores}");
}
