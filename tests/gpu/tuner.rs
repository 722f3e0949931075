//! The tuner on a real adapter: operands of every kind are made up, answers agree, what was found is
//! planned, and what is kept is used where it was written, and nowhere else. Nothing here depends on
//! times: what the tuner makes of those is tested beside the code, by times that tests write.

mod file;
mod pipelines;
mod planted;
mod problems;
mod self_test;

use std::time::Duration;

use wgpu_attention::{
    Attention, Choice, Class, Error, Gpu, Method, Operand, Outcome, Problem, Shape, Tile, Tuned,
    Tuner, TunerSettings, Tuning,
};

use crate::support::gpu;
use problems::kinds;

/// Small, and the same everywhere: its pipelines are compiled once.
fn small() -> Problem {
    Problem::new(Shape::self_attention(1, 2, 40, 16))
}

/// Time for the incumbent, and no other.
fn hasty(gpu: &Gpu) -> Tuner {
    Tuner::new(gpu).with_settings(TunerSettings::default().budget(Duration::ZERO))
}

/// Time for all, on whatever machine.
fn patient(gpu: &Gpu) -> Tuner {
    Tuner::new(gpu).with_settings(TunerSettings::default().budget(Duration::MAX).rounds(3))
}

/// The same planner with two methods: where many candidates would prove no more, and cost more.
fn two_methods(planner: Attention) -> Attention {
    planner.without(Method::Flash).without(Method::Broadcast).without(Method::Matrix)
}

/// A device with all methods but matrices that computes nothing: plans cost nothing there.
fn noop() -> Attention {
    Attention::new(&wgpu_attention_support::lanes::device(
        &wgpu::DeviceDescriptor::default(),
        [8, 8],
    ))
}

fn words(tuned: &Tuned) -> String {
    let mut text = format!("{}: {}\n", tuned.class, tuned.choice);
    for candidate in &tuned.candidates {
        if !matches!(candidate.outcome, Outcome::Refused(_) | Outcome::Same) {
            text += &format!("    {}: {:?}\n", candidate.choice, candidate.outcome);
        }
    }
    text
}

/// Those that computed something, all of them right.
fn measured(tuned: &Tuned) -> usize {
    assert!(tuned.finished, "{}", words(tuned));
    let outcomes = tuned.candidates.iter().map(|candidate| &candidate.outcome);
    let raced = outcomes.filter(|outcome| match outcome {
        Outcome::Final { .. } | Outcome::Slow { .. } => true,
        Outcome::Same => false,
        Outcome::Refused(error) => {
            use Error::{Excluded, Limit, Unexpected};
            // Unexpected: matrices of a method that never forms them.
            let sound = matches!(error, Limit { .. } | Excluded { .. } | Unexpected { .. });
            assert!(sound, "{error}");
            false
        }
        _ => panic!("{}", words(tuned)),
    });
    raced.count()
}

/// Every kind of operand is made up, every answer agrees, and what was found is planned.
#[test]
fn every_kind_of_problem() {
    let few = gpu().clone().with_attention(two_methods(gpu().planner().clone()));
    let mut tuner = patient(&few);
    for (name, problem) in kinds() {
        let tuned =
            tuner.measure(&problem, |_| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
        let raced = measured(&tuned);
        // Only one method writes matrices; without keys all do the same.
        assert_eq!(raced > 1, !["scores", "no keys"].contains(&name), "{name}");
        let by_tuning = tuner.attention().plan(&problem).expect(name);
        let by_hand = few.planner().plan_with(&problem, tuned.choice).expect(name);
        assert!(by_tuning.describe() == by_hand.describe(), "{name}: {}", tuned.choice);
        assert_eq!(tuner.tuning().get(&Class::of(&problem).expect(name)), Some(tuned.choice));
        println!("{name}: {raced} agree; {}", tuned.choice);
    }
}

/// All methods there are, and all tiles of use for so few tokens.
#[test]
fn every_candidate_races() {
    let problem = Problem::new(Shape::self_attention(1, 1, 8, 8));
    let mut tuner = patient(gpu());
    let mut shown = Vec::new();
    let tuned = tuner.measure(&problem, |at| shown.push(at)).expect("measured");
    println!("{}", words(&tuned));
    let candidates = gpu().planner().candidates(&problem).expect("some");
    assert_eq!(measured(&tuned), candidates.len());
    assert!(shown.is_sorted_by_key(|at| at.elapsed));
    assert!(shown.last().is_some_and(|last| last.elapsed <= tuned.elapsed));
    // What is known is not measured again.
    let choice = tuner.tune(&problem, |_| panic!("again")).expect("known");
    assert_eq!(choice, tuned.choice);
}

#[test]
fn candidates_differ_and_can_be_planned() {
    let planner = noop();
    let mut methods = Vec::new();
    for (name, problem) in kinds() {
        let candidates = planner.candidates(&problem).expect(name);
        assert_eq!(candidates[0], Choice::default(), "{name}");
        let plans: Vec<_> = candidates
            .iter()
            .map(|&choice| planner.plan_with(&problem, choice).expect(name).describe())
            .collect();
        for (at, plan) in plans.iter().enumerate() {
            assert!(!plans[..at].contains(plan), "{name}: {}", candidates[at]);
            methods.push(plan.method);
        }
        println!("{name}: {} candidates", candidates.len());
    }
    for method in [Method::Staged, Method::Flash, Method::Broadcast, Method::Decode] {
        assert!(methods.contains(&method), "no {method:?}");
    }
}

/// Zero time is time for nothing but the incumbent.
#[test]
fn no_time() {
    let mut tuner = hasty(gpu());
    let class = Class::of(&small()).expect("valid");
    let mut shown = Vec::new();
    let tuned = tuner.measure(&small(), |at| shown.push(at)).expect("measured");
    assert_eq!((shown[0].round, shown[0].candidate, shown[0].class), (0, 1, class));
    assert!(shown.iter().all(|at| at.candidate >= 1 && at.candidate <= at.candidates));
    assert_eq!((tuned.choice, tuned.finished), (Choice::default(), false));
    let unmeasured = tuned.candidates.iter().filter(|c| matches!(c.outcome, Outcome::Unmeasured));
    assert_eq!(unmeasured.count() + 1, tuned.candidates.len());
    // It is known for as little time.
    let choice = tuner.tune(&small(), |_| panic!("again")).expect("known");
    assert_eq!(choice, tuned.choice);
}

/// A choice of the class that this problem does not allow is no error, one by hand is.
#[test]
fn what_does_not_fit_falls_back() {
    let (planner, few) = (noop(), small());
    let scores = few.clone().scores();
    let far = Problem::new(Shape::self_attention(1, 2, 40, 16).value_dim(2000));
    let (small, huge) = (Tile { queries: 4, keys: 4 }, Tile { queries: 1024, keys: 1024 });
    for (problem, choice) in
        [(few, Choice::tile(huge)), (scores, Choice::tile(small)), (far, Choice::tile(small))]
    {
        let class = Class::of(&problem).expect("valid");
        let tuned = planner.clone().with_tuning(Tuning::default().with(class, choice));
        assert!(tuned.plan_with(&problem, choice).is_err());
        let want = planner.plan(&problem).expect("a plan").describe();
        assert!(tuned.plan(&problem).expect("a plan").describe() == want, "{choice}");
    }
}

#[test]
fn what_cannot_be_measured() {
    let mut tuner = hasty(gpu());
    let nothing = Problem::new(Shape::self_attention(1, 2, 0, 16));
    let error = tuner.measure(&nothing, |_| {}).expect_err("an error");
    assert!(matches!(error, Error::Size { what: "o", .. }), "{error}");
    let bad = Problem::new(Shape::self_attention(1, 2, 8, 0));
    assert!(tuner.measure(&bad, |_| {}).is_err() && tuner.tune(&bad, |_| {}).is_err());
    // 4 sequences of 64 tokens want 16 pages of 16.
    let tight = wgpu_attention::CacheShape::new(4, 2, 64, 16).paged(16, 15).problem(2, 1);
    let error = tuner.measure(&tight, |_| {}).expect_err("an error");
    assert!(matches!(error, Error::Full { .. }), "{error}");
    let far = Problem::new(Shape::self_attention(1, 2, 8, 16)).layout(
        Operand::Q,
        wgpu_attention::Layout {
            offset: u32::MAX - 4000,
            ..wgpu_attention::Layout::head_major(2, 8, 16)
        },
    );
    assert!(tuner.measure(&far, |_| {}).is_err());
    assert!(tuner.tuning().is_empty());
    assert!(tuner.measure(&small(), |_| {}).is_ok());
}

/// Before the first candidate and between two of them.
#[test]
fn a_lost_device() {
    for after in [0, 2] {
        let (device, queue) = crate::support::device(wgpu::Limits::default());
        let mut tuner = patient(&Gpu::from_device(device.clone(), queue));
        if after == 0 {
            device.destroy();
        }
        let error = tuner.measure(&small(), |at| {
            if at.candidate == after {
                device.destroy();
            }
        });
        assert!(matches!(error, Err(Error::DeviceLost(_))), "after {after}: {error:?}");
        assert!(tuner.tuning().is_empty());
    }
}
