//! The tuner on a real adapter: what it picks is as fast as what the planner would have taken, or
//! faster; what it keeps is used where it was written, and nowhere else.

mod file;
mod pipelines;
mod planted;
mod problems;
mod self_test;
mod timing;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wgpu_attention::{
    Choice, Class, Error, Gpu, Operand, Outcome, Problem, Shape, Tile, Tuned, Tuner, TunerSettings,
    Tuning,
};

use crate::support::gpu;
use problems::{classes, kinds};

/// Long enough for a decision on a software adapter with warm pipelines.
fn tuner() -> Tuner {
    let settings = TunerSettings::default().budget(Duration::from_secs(3));
    Tuner::new(gpu()).with_settings(settings)
}

/// One test of this file measures at a time; others may still run.
fn quiet() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn words(tuned: &Tuned) -> String {
    let mut text = format!(
        "{}: {}, {:.1?}, {}\n",
        tuned.class,
        tuned.choice,
        tuned.elapsed,
        if tuned.finished { "finished" } else { "out of time" },
    );
    for candidate in &tuned.candidates {
        if !matches!(candidate.outcome, Outcome::Refused(_) | Outcome::Same) {
            text += &format!("    {}: {:?}\n", candidate.choice, candidate.outcome);
        }
    }
    text
}

/// Every pick, measured again beside the planner's own choice, costs at most 1.05 times its time.
#[test]
fn picks_cost_no_more() {
    let _turn = quiet();
    let mut tuner = tuner();
    for problem in classes() {
        let tuned = tuner.measure(&problem, |_| {}).expect("measured");
        let [default, pick] = [Choice::default(), tuned.choice]
            .map(|choice| gpu().planner().plan_with(&problem, choice).expect("a plan"));
        let ratio = if default.describe() == pick.describe() {
            1.0
        } else {
            timing::ratio(&problem, [&default, &pick], 1.05)
        };
        println!("{}again: {ratio:.3} of the default's time", words(&tuned));
        assert!(ratio <= 1.05, "{}: {ratio} of the default's time", tuned.class);
        assert!(!tuned.candidates.iter().any(|c| matches!(c.outcome, Outcome::Wrong)));
    }
    assert_eq!(tuner.tuning().len(), 8);
}

/// Every kind of operand is made up, every answer agrees, and what was found is planned.
#[test]
fn every_kind_of_problem() {
    let _turn = quiet();
    let settings = TunerSettings::default().budget(Duration::from_millis(400)).rounds(3);
    let mut tuner = Tuner::new(gpu()).with_settings(settings);
    for (name, problem) in kinds() {
        let tuned =
            tuner.measure(&problem, |_| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
        let wrong = tuned.candidates.iter().find(|c| matches!(c.outcome, Outcome::Wrong));
        assert!(wrong.is_none(), "{name}: {wrong:?}");
        let by_tuning = tuner.attention().plan(&problem).expect(name);
        let by_hand = gpu().planner().plan_with(&problem, tuned.choice).expect(name);
        assert_eq!(by_tuning.describe(), by_hand.describe(), "{name}");
        assert_eq!(tuner.tuning().get(&Class::of(&problem).expect(name)), Some(tuned.choice));
        println!("{name}: {}", words(&tuned).lines().next().expect("a line"));
    }
}

#[test]
fn candidates_differ_and_can_be_planned() {
    let _turn = quiet();
    for (name, problem) in kinds() {
        let candidates = gpu().planner().candidates(&problem).expect(name);
        assert_eq!(candidates[0], Choice::default(), "{name}");
        let plans: Vec<_> = candidates
            .iter()
            .map(|&choice| gpu().planner().plan_with(&problem, choice).expect(name).describe())
            .collect();
        for (at, plan) in plans.iter().enumerate() {
            assert!(!plans[..at].contains(plan), "{name}: {}", candidates[at]);
        }
        println!("{name}: {} candidates", candidates.len());
    }
}

/// Zero time is time for nothing but the incumbent; what is shown is in order.
#[test]
fn budget_and_progress() {
    let _turn = quiet();
    let problem = Problem::new(Shape::self_attention(1, 2, 70, 16));
    let class = Class::of(&problem).expect("valid");
    for millis in [0, 300] {
        let budget = Duration::from_millis(millis);
        let mut tuner =
            Tuner::new(gpu()).with_settings(TunerSettings::default().budget(budget).rounds(3));
        let mut shown = Vec::new();
        let tuned = tuner.measure(&problem, |at| shown.push(at)).expect("measured");
        let late = Duration::from_secs(if millis == 0 { 5 } else { 10 });
        assert!(tuned.elapsed < budget + late, "{:?}", tuned.elapsed);
        assert_eq!((shown[0].round, shown[0].candidate, shown[0].class), (0, 1, class));
        assert!(shown.windows(2).all(|two| two[0].round <= two[1].round));
        assert!(shown.windows(2).all(|two| two[0].elapsed <= two[1].elapsed));
        assert!(shown.iter().all(|at| at.candidate >= 1 && at.candidate <= at.candidates));
        if millis == 0 {
            assert_eq!(tuned.choice, Choice::default());
            assert!(!tuned.finished);
            let unmeasured =
                |c: &&wgpu_attention::Candidate| matches!(c.outcome, Outcome::Unmeasured);
            assert_eq!(
                tuned.candidates.iter().filter(unmeasured).count() + 1,
                tuned.candidates.len()
            );
        }
        // What is known is not measured again.
        let mut again = 0;
        let choice = tuner.tune(&problem, |_| again += 1).expect("known");
        assert_eq!((choice, again), (tuned.choice, 0));
    }
}

/// A choice of the class that this problem does not allow is no error, one by hand is.
#[test]
fn what_does_not_fit_falls_back() {
    let few = Problem::new(Shape::self_attention(1, 2, 40, 16));
    let scores = few.clone().scores();
    let far = Problem::new(Shape::self_attention(1, 2, 40, 16).value_dim(2000));
    let (small, huge) = (Tile { queries: 4, keys: 4 }, Tile { queries: 1024, keys: 1024 });
    for (problem, choice) in
        [(few, Choice::tile(huge)), (scores, Choice::tile(small)), (far, Choice::tile(small))]
    {
        let class = Class::of(&problem).expect("valid");
        let planner = gpu().planner().clone().with_tuning(Tuning::default().with(class, choice));
        assert!(planner.plan_with(&problem, choice).is_err());
        let want = gpu().planner().plan(&problem).expect("a plan");
        assert_eq!(planner.plan(&problem).expect("a plan").describe(), want.describe());
    }
}

#[test]
fn what_cannot_be_measured() {
    let mut tuner = tuner();
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
    assert!(tuner.measure(&Problem::new(Shape::self_attention(1, 1, 4, 4)), |_| {}).is_ok());
}

/// Before the first candidate and between two of them.
#[test]
fn a_lost_device() {
    let problem = Problem::new(Shape::self_attention(1, 2, 40, 16));
    for after in [0, 2] {
        let (device, queue) = crate::support::device(wgpu::Limits::default());
        let mut tuner = Tuner::new(&Gpu::from_device(device.clone(), queue));
        if after == 0 {
            device.destroy();
        }
        let error = tuner.measure(&problem, |at| {
            if at.candidate == after {
                device.destroy();
            }
        });
        assert!(matches!(error, Err(Error::DeviceLost(_))), "after {after}: {error:?}");
        assert!(tuner.tuning().is_empty());
    }
}
