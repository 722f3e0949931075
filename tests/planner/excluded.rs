//! Methods that options exclude: what is planned instead, and what is refused.

use wgpu_attention::{
    Attention, CacheShape, Choice, Error, LoopLimit, Method, Options, Problem, Shape, Tile,
};

use crate::device::Pretend;
use crate::problems::problems;
use wgpu_attention_support::lanes;

fn planned(attention: &Attention, problem: &Problem, choice: Choice) -> Result<Method, Error> {
    attention.plan_with(problem, choice).map(|plan| plan.method())
}

/// Every subset of methods, by options and afterwards: the order of the fallback.
#[test]
fn the_first_one_left() {
    let order = [Method::Flash, Method::Broadcast, Method::Decode, Method::Staged];
    let (few, none) =
        (Shape::self_attention(1, 2, 40, 16), Shape::self_attention(1, 2, 4, 4).kv_len(0));
    for (device, has_lanes) in [
        (wgpu::Device::noop(&Default::default()).0, false),
        (lanes::device(&Default::default(), [8, 8]), true),
    ] {
        for subset in 0..16u32 {
            let excluded = |method: &Method| subset >> (*method as u32) & 1 == 1;
            let all = || order.into_iter().filter(excluded);
            let options = all().fold(Options::default(), Options::without);
            let by_options = Attention::with(&device, options);
            let afterwards = all().fold(Attention::new(&device), Attention::without);
            let possible =
                |method: &Method| !excluded(method) && (has_lanes || *method != Method::Broadcast);
            let want = order.into_iter().find(possible);
            let want = want.ok_or(Error::Excluded { method: Method::Flash });
            for attention in [&by_options, &afterwards] {
                let plan = |problem: &Problem, choice| planned(attention, problem, choice);
                assert_eq!(plan(&Problem::new(few), Choice::default()), want, "{subset:04b}");
                for method in all() {
                    let by_hand = plan(&Problem::new(few), Choice::method(method));
                    assert_eq!(by_hand, Err(Error::Excluded { method }));
                }
                // Only `staged` forms weights, and without keys there is nothing for it to do.
                let weights = plan(&Problem::new(few).weights(), Choice::default());
                let staged = Method::Staged;
                let no_weights = Err(Error::Excluded { method: staged });
                assert_eq!(weights, if excluded(&staged) { no_weights } else { Ok(staged) });
                let no_keys = plan(&Problem::new(none), Choice::default());
                assert_ne!(no_keys, Ok(staged), "{subset:04b}");
                let cached = CacheShape::new(1, 2, 50, 16).problem(4, 3);
                assert_eq!(plan(&cached, Choice::default()).is_ok(), want.is_ok());
                let tile = Choice::default().with_tile(Tile { queries: 8, keys: 8 });
                assert_eq!(plan(&Problem::new(few), tile).is_ok(), !excluded(&Method::Flash));
            }
        }
    }
}

/// With one method less, every problem that the rest can compute is planned.
#[test]
fn every_problem_without_one() {
    let pretend = Pretend::new(&wgpu::Limits::default(), LoopLimit::Unlimited);
    let mut instead = 0;
    for &method in Method::ALL {
        let without = pretend.attention.clone().without(method);
        for (name, problem, _) in problems() {
            let all = planned(&pretend.attention, &problem, Choice::default());
            let left = planned(&without, &problem, Choice::default());
            assert_ne!(left, Ok(method), "{name}");
            if all == Ok(method) {
                instead += usize::from(left.is_ok());
                let excluded = Err(Error::Excluded { method });
                assert!(left.is_ok() || left == excluded, "{name} without {method:?}: {left:?}");
            } else {
                assert_eq!(all, left, "{name} without {method:?}");
            }
        }
    }
    assert!(instead > 10, "{instead}");
}
