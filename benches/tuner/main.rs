//! What the tuner finds, measured again beside the planner's own choice: at most 1.05 of its time in
//! each of eight classes, and at most 0.8 of that of a slow choice that is planted. Ends with 1 if not.
//!
//! `--test`: measures one class with no time to spare, and judges no ratio.

mod classes;
mod timing;

use std::process::ExitCode;
use std::time::Duration;

use classes::classes;
use wgpu_attention::{
    Choice, Class, Gpu, Outcome, Problem, Shape, Tile, Tuned, Tuner, TunerSettings, Tuning,
};

/// Of the default's time, by more than the clocks differ.
const MOST: f64 = 1.05;
/// Of the planted choice's.
const MOST_OF_PLANTED: f64 = 0.8;

fn main() -> ExitCode {
    // Without `--bench` this is a test, and tests depend on no times.
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    let is_test = has("--test") || !has("--bench");
    let gpu = Gpu::new().unwrap_or_else(|error| panic!("{error}"));
    let mut slow = Vec::new();
    for problem in classes().iter().take(if is_test { 1 } else { usize::MAX }) {
        let (tuned, ratio) = found(&gpu, problem, is_test);
        println!("{}: {}, {ratio:.2} of the default's time", tuned.class, tuned.choice);
        slow.extend((ratio > MOST).then_some(tuned.class));
    }
    if is_test {
        println!("no ratio was judged");
        return ExitCode::SUCCESS;
    }
    slow.extend(planted(&gpu));
    slow.iter().for_each(|class| println!("TOO SLOW: {class}"));
    if slow.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What the tuner finds, and what that takes of the default's time.
fn found(gpu: &Gpu, problem: &Problem, is_test: bool) -> (Tuned, f64) {
    let settings = TunerSettings::default();
    let settings = if is_test { settings.budget(Duration::ZERO) } else { settings };
    let mut tuner = Tuner::new(gpu).with_settings(settings);
    let tuned = tuner.measure(problem, |_| {}).expect("measured");
    let is_wrong = |tuned: &Tuned| {
        tuned.candidates.iter().any(|candidate| matches!(candidate.outcome, Outcome::Wrong))
    };
    assert!(!is_wrong(&tuned), "{tuned:?}");
    let [default, pick] = [Choice::default(), tuned.choice]
        .map(|choice| gpu.planner().plan_with(problem, choice).expect("a plan"));
    let is_same = default.describe() == pick.describe();
    let ratio = if is_same { 1.0 } else { timing::ratio(gpu, problem, [&default, &pick], MOST) };
    (tuned, ratio)
}

/// A planner whose tuning is far from the best: its class, if what the tuner finds is no better.
fn planted(gpu: &Gpu) -> Option<Class> {
    let problem = Problem::new(Shape::self_attention(1, 4, 256, 64));
    let class = Class::of(&problem).expect("valid");
    let slow = Choice::tile(Tile { queries: 4, keys: 4 });
    let planner = gpu.planner().clone().with_tuning(Tuning::default().with(class, slow));
    let mut tuner = Tuner::new(&gpu.clone().with_attention(planner));
    let tuned = tuner.measure(&problem, |_| {}).expect("measured");
    let [plan, better] = [slow, tuned.choice]
        .map(|choice| gpu.planner().plan_with(&problem, choice).expect("a plan"));
    let ratio = timing::ratio(gpu, &problem, [&plan, &better], MOST_OF_PLANTED);
    println!("{class}: planted {slow}, found {}, {ratio:.3} of its time", tuned.choice);
    (ratio > MOST_OF_PLANTED).then_some(class)
}
