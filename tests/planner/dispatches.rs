//! How long work is cut into dispatches, and what the fused kernel refuses.

use wgpu_attention::{Choice, Error, LoopLimit, Method, Problem, Shape};

use crate::device::Pretend;

const FLASH: Choice = Choice::method(Method::Flash);

/// (tile tokens, workgroups of each dispatch of `kernel`).
fn workgroups(pretend: &Pretend, problem: &Problem, choice: Choice, kernel: &str) -> Vec<u64> {
    let description = pretend.attention.plan_with(problem, choice).expect("a plan").describe();
    let dispatches = description.dispatches.iter().filter(|d| d.kernel == kernel);
    dispatches.map(|d| d.grid.iter().map(|&n| u64::from(n)).product()).collect()
}

fn tiles(pretend: &Pretend, problem: &Problem, choice: Choice) -> u64 {
    let shape = problem.shape();
    let tile = pretend.attention.plan_with(problem, choice).expect("a plan").describe().tile;
    u64::from(shape.batch * shape.q_heads) * u64::from(shape.q_len.div_ceil(tile.queries))
}

/// No dispatch keeps the device for seconds, and none is left out: every tile has its workgroup.
#[test]
fn long_work_is_cut_into_dispatches() {
    let heads = |heads, tokens| Problem::new(Shape::self_attention(1, heads, tokens, 64));
    let long = heads(8, 65_536);
    for limits in [
        wgpu::Limits::default(),
        wgpu::Limits { max_compute_workgroup_storage_size: 32 << 10, ..wgpu::Limits::default() },
        wgpu::Limits { max_compute_workgroups_per_dimension: 64, ..wgpu::Limits::default() },
    ] {
        let pretend = Pretend::new(&limits, LoopLimit::Unlimited);
        let all = tiles(&pretend, &long, FLASH);
        let groups = workgroups(&pretend, &long, FLASH, "flash");
        println!("{} dispatches of up to {} workgroups", groups.len(), groups[0]);
        assert!(groups.len() > 1 && groups.len() < 100);
        // A folded grid may have a few more workgroups than tiles.
        let sum: u64 = groups.iter().sum();
        let spare = 64 * groups.len() as u64;
        assert!(sum >= all && sum < all + spare, "{sum} workgroups, {all} tiles");
        // The last dispatch may be smaller, no other may.
        assert!(groups[..groups.len() - 1].iter().all(|&n| n == groups[0]), "{groups:?}");

        for small in [heads(8, 512), heads(1, 4096), heads(8, 1)] {
            let groups = workgroups(&pretend, &small, FLASH, "flash");
            assert_eq!(groups.len(), 1, "{small:?}");
            assert!(groups[0] >= tiles(&pretend, &small, FLASH), "{small:?}");
        }
    }
}

/// The same where keys are split: every round of partial results is merged.
#[test]
fn rounds_cover_every_tile_and_split() {
    let pretend = Pretend::new(&wgpu::Limits::default(), LoopLimit::Iterations(65_535));
    for (tokens, most) in [(65_536, 200), (4096, 40)] {
        let problem = Problem::new(Shape::self_attention(1, 8, tokens, 64));
        let plan = pretend.attention.plan_with(&problem, FLASH).expect("a plan");
        let all = tiles(&pretend, &problem, FLASH);
        let split = plan.describe().split_keys.map_or(tokens, |keys| keys.min(tokens));
        let splits = u64::from(tokens.div_ceil(split));
        let sum = |kernel| workgroups(&pretend, &problem, FLASH, kernel).iter().sum::<u64>();
        let rounds = workgroups(&pretend, &problem, FLASH, "flash").len() as u64;
        println!("{tokens} tokens: {rounds} rounds, {splits} splits, {all} tiles");
        assert!((1..most).contains(&rounds) && (tokens < 65_536 || rounds > 1));
        let flash = sum("flash");
        assert!(flash >= all * splits && flash < all * splits + 512 * rounds);
        let merge = if splits > 1 { sum("merge") } else { all };
        assert!(merge >= all && merge < all + 512 * rounds);
    }
}

/// A thread keeps at most 16 quads of O a row: 2048 value dims over 32 threads.
#[test]
fn value_rows_too_long_for_registers() {
    let of = |value_dim| Problem::new(Shape::self_attention(1, 1, 8, 64).value_dim(value_dim));
    for limits in [
        wgpu::Limits::default(),
        wgpu::Limits {
            max_compute_workgroup_storage_size: 64 << 10,
            max_compute_invocations_per_workgroup: 1024,
            max_compute_workgroup_size_x: 1024,
            ..wgpu::Limits::default()
        },
    ] {
        let pretend = Pretend::new(&limits, LoopLimit::Unlimited);
        let what = "value_dim of the fused kernel";
        for choice in [FLASH, Choice::default()] {
            for value_dim in [2052, 4096] {
                let error = pretend.attention.plan_with(&of(value_dim), choice).map(|_| ());
                let want = Error::Limit { what, need: value_dim.into(), got: 2048 };
                assert_eq!(error, Err(want), "{choice:?}");
            }
        }
        pretend.attention.plan_with(&of(4096), Choice::method(Method::Staged)).expect("staged");
    }
}
