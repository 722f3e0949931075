//! What compiles, and where keys are split.

use wgpu_attention::{
    Align, Band, BiasLayout, Choice, Layout, LoopLimit, Method, Operand, Problem, Shape,
};

use crate::device::Pretend;

/// Growing lengths and other layouts, scales, bands must not compile anything.
#[test]
fn what_lies_in_the_uniform_reuses_modules() {
    let shape = Shape::self_attention(1, 2, 40, 8);
    let padded = |rows: u32| Layout { offset: 16, batch: 2 * rows * 12, head: 12, token: 24 };
    let base = |shape: Shape| Problem::new(shape).bias_shape(&[shape.kv_len]).lse();
    let strided = BiasLayout { offset: 3, query: 1000, key: 1, ..Default::default() };
    let changes: [(&str, Problem); 9] = [
        ("lengths", base(Shape { q_len: 100, kv_len: 7, ..shape })),
        ("a long cache", base(shape.kv_len(30_000))),
        ("batch and heads", base(Shape { batch: 3, q_heads: 6, ..shape })),
        ("token-major q", base(shape).layout(Operand::Q, padded(40))),
        ("every layout", {
            let operands = [Operand::Q, Operand::K, Operand::V, Operand::O];
            operands.into_iter().fold(base(shape), |p, o| p.layout(o, padded(40)))
        }),
        ("scale", base(shape).scale(-2.0)),
        ("causal", base(shape).causal()),
        ("a band", {
            let band = Band { left: Some(3), right: Some(9) };
            base(shape.kv_len(64)).band(band).align(Align::Shift(5))
        }),
        ("bias strides", base(shape).bias(strided)),
    ];
    for method in [Method::Flash, Method::Staged] {
        let pretend = Pretend::new(&wgpu::Limits::default(), LoopLimit::Unlimited);
        let choice = Choice::method(method);
        // Plans are kept: a pipeline compiled twice is then there twice.
        let mut plans = Vec::new();
        let mut text = |problem: &Problem| {
            let plan = pretend.attention.plan_with(problem, choice).expect("a plan");
            let dispatches = plan.describe().dispatches;
            plans.push(plan);
            dispatches.into_iter().map(|d| (d.kernel, d.wgsl)).collect::<Vec<_>>()
        };
        let want = text(&base(shape));
        let compiled = pretend.pipelines();
        assert_eq!(compiled, want.len());
        for (name, problem) in &changes {
            assert!(text(problem) == want, "{method:?}: {name} composes other modules");
        }
        assert_eq!(pretend.pipelines(), compiled, "{method:?}: something was compiled again");
        // That there is a softcap compiles; which one it is does not.
        assert!(text(&base(shape).softcap(2.0)) == text(&base(shape).softcap(3.0)));
        // What shapes registers does compile.
        let compiled = pretend.pipelines();
        assert!(text(&base(Shape { head_dim: 12, ..shape })) != want);
        assert!(pretend.pipelines() > compiled);
    }
}

/// Limits decide on splits; the stages before the split one are the same for all.
#[test]
fn loop_limits_share_pipelines() {
    let pretend = Pretend::new(&wgpu::Limits::default(), LoopLimit::Unlimited);
    let problem = Problem::new(Shape::self_attention(1, 2, 40, 8).kv_len(5000));
    let plan = |limit| {
        let attention = pretend.attention.clone().with_loop_limit(limit);
        attention.plan_with(&problem, Choice::method(Method::Staged)).expect("a plan")
    };
    let whole = plan(LoopLimit::Unlimited);
    assert_eq!((whole.describe().split_keys, pretend.pipelines()), (None, 3));
    // `values` into scratch, and `merge`.
    let split = plan(LoopLimit::Iterations(2000));
    assert!(split.describe().split_keys.is_some());
    assert_eq!(pretend.pipelines(), 5);
    let again = plan(LoopLimit::Auto);
    assert_eq!((again.describe(), pretend.pipelines()), (whole.describe(), 5));
}

/// Else a head's result would change with its neighbours.
#[test]
fn splits_depend_on_the_kernel_only() {
    let shape = Shape::self_attention(1, 1, 64, 64).kv_len(50_000);
    for (method, most) in [(Method::Flash, 20_000), (Method::Staged, 20_000), (Method::Flash, 8000)]
    {
        let pretend = Pretend::new(&wgpu::Limits::default(), LoopLimit::Iterations(most));
        let choice = Choice::method(method);
        let of = |shape: Shape| {
            let plan = pretend.attention.plan_with(&Problem::new(shape), choice).expect("a plan");
            let description = plan.describe();
            let split = description.split_keys.expect("a split");
            let sweep = ["flash", "values"];
            let mut sweeps = description.dispatches.iter().filter(|d| sweep.contains(&d.kernel));
            let groups: u64 = sweeps
                .by_ref()
                .map(|d| d.grid.iter().map(|&n| u64::from(n)).product::<u64>())
                .sum();
            let tiles = u64::from(shape.batch * shape.q_heads)
                * u64::from(shape.q_len.div_ceil(description.tile.queries));
            let splits = u64::from(shape.kv_len.div_ceil(split));
            assert!(
                groups >= tiles * splits,
                "{groups} workgroups, {tiles} tiles, {splits} splits"
            );
            assert!(description.dispatches.iter().any(|d| d.kernel == "merge"));
            split
        };
        let want = of(shape);
        println!("{method:?}, {most} iterations: splits of {want} keys");
        for other in [
            Shape { batch: 3, ..shape },
            Shape { q_heads: 8, kv_heads: 2, ..shape },
            shape.kv_len(want + 1),
            shape.kv_len(90_001),
            Shape { q_len: 200, ..shape },
        ] {
            assert_eq!(of(other), want, "{other:?}");
        }
    }
}
