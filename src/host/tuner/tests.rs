//! What a tuner keeps of races whose times a test writes.

use super::script::{Cost, Script, noop};
use super::*;
use crate::{Shape, Tile};

const MILLI: Duration = Duration::from_millis(1);

fn problem() -> Problem {
    Problem::new(Shape::self_attention(1, 2, 64, 16))
}

fn race<C: Fn(Choice) -> Cost>(tuner: &mut Tuner, script: &Script<C>) -> Tuned {
    let (mut timer, mut show) = (script, |at| script.show(at));
    tuner.race(&problem(), &mut timer, &mut show).expect("a result")
}

fn budget(tuner: Tuner, budget: Duration) -> Tuner {
    tuner.with_settings(TunerSettings::default().budget(budget))
}

/// What ran out of time is measured again where there is more of it, and only there; what was finished
/// never.
#[test]
fn the_unfinished_goes_on() {
    let file = std::env::temp_dir().join(format!("wgpu-attention-script-{}", std::process::id()));
    // A candidate takes 10 ms.
    let cost = |_| Cost { compile: 8 * MILLI, call: MILLI, wrong: false };
    let gpu = noop();
    let fresh = || Tuner::new(&gpu);
    let mut tuner = budget(fresh(), 30 * MILLI);
    assert_eq!(tuner.known(&problem()), Ok(None));
    let tuned = race(&mut tuner, &Script::new(cost));
    assert!(!tuned.finished);
    let count = tuned.candidates.len();
    let unmeasured = |tuned: &Tuned| {
        let unmeasured = |c: &&Candidate| matches!(c.outcome, Outcome::Unmeasured);
        tuned.candidates.iter().filter(unmeasured).count()
    };
    assert!(unmeasured(&tuned) > 0 && unmeasured(&tuned) < count - 1);
    tuner.save(&file).expect("written");
    let load = |time| {
        let mut tuner = budget(fresh(), time);
        assert_eq!(tuner.load(&file), Loaded::Fresh);
        tuner
    };
    for (time, known) in [(0, true), (30, true), (31, false), (u64::MAX, false)] {
        let time = Duration::from_millis(time);
        let found = load(time).known(&problem()).expect("valid");
        assert_eq!(found, known.then_some(tuned.choice), "{time:?}");
        let here = budget(tuner.clone(), time).known(&problem()).expect("valid");
        assert_eq!(here, found, "{time:?}");
    }
    // More time, but not enough: from now on 40 ms are known not to suffice.
    let mut tuner = load(40 * MILLI);
    assert!(!race(&mut tuner, &Script::new(cost)).finished);
    tuner.save(&file).expect("written");
    assert!(load(40 * MILLI).known(&problem()).expect("valid").is_some());
    assert!(load(41 * MILLI).known(&problem()).expect("valid").is_none());
    // Enough.
    let mut tuner = load(Duration::MAX);
    let tuned = race(&mut tuner, &Script::new(cost));
    assert!(tuned.finished && unmeasured(&tuned) == 0);
    tuner.save(&file).expect("written");
    for time in [Duration::ZERO, Duration::MAX] {
        assert_eq!(load(time).known(&problem()), Ok(Some(tuned.choice)));
    }
    std::fs::remove_file(&file).expect("removed");
}

/// What is known is the incumbent, and stays unless something beats it.
#[test]
fn a_slow_default_is_replaced() {
    let planted = Choice::tile(Tile { queries: 4, keys: 4 });
    let class = Class::of(&problem()).expect("valid");
    let gpu = noop();
    let planner = gpu.planner().clone().with_tuning(Tuning::default().with(class, planted));
    let gpu = gpu.with_attention(planner);
    for (micros, stays) in [(670, false), (106, false), (105, true), (50, true)] {
        let mut tuner = budget(Tuner::new(&gpu), Duration::MAX);
        assert_eq!(tuner.known(&problem()), Ok(Some(planted)));
        let script = Script::new(|choice| {
            let micros = if choice == planted { micros } else { 100 };
            Cost { call: Duration::from_micros(micros), ..Cost::default() }
        });
        let tuned = race(&mut tuner, &script);
        assert_eq!(tuned.candidates[0].choice, planted);
        assert_eq!(tuned.choice == planted, stays, "{micros}: {tuned:?}");
        assert_eq!(tuner.known(&problem()), Ok(Some(tuned.choice)));
        let does = |plan: crate::Plan| (plan.method(), plan.describe().tile);
        let by_hand = tuner.gpu.planner().plan_with(&problem(), tuned.choice).map(does);
        assert_eq!(tuner.attention().plan(&problem()).map(does), by_hand);
    }
}
