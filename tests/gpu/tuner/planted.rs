//! Slow and wrong choices that are planted.

use std::time::Duration;

use wgpu_attention::{
    Attention, Candidate, Choice, Class, LoopLimit, Method, Options, Outcome, Problem, Shape, Tile,
    Tuner, TunerSettings, Tuning,
};

use super::{quiet, timing, words};
use crate::support::gpu;

/// Time for every candidate to be compiled and seen, also where others keep the machine busy.
fn unhurried() -> TunerSettings {
    TunerSettings::default().rounds(3).budget(Duration::from_secs(300))
}

/// A planner with a tuning that is far from the best: the tuner finds a better one.
#[test]
fn a_slow_default_is_replaced() {
    let _turn = quiet();
    let problem = Problem::new(Shape::self_attention(1, 4, 256, 64));
    let class = Class::of(&problem).expect("valid");
    let slow = Choice::tile(Tile { queries: 4, keys: 4 });
    let planted = gpu().planner().clone().with_tuning(Tuning::default().with(class, slow));
    let gpu = gpu().clone().with_attention(planted);
    let plan = gpu.planner().plan(&problem).expect("a plan");
    assert_eq!(plan.describe().tile, Tile { queries: 4, keys: 4 });

    let mut tuner = Tuner::new(&gpu).with_settings(unhurried());
    // What is known is not measured again unless that is wanted.
    assert_eq!(tuner.tune(&problem, |_| panic!("measured")).expect("known"), slow);
    let tuned = tuner.measure(&problem, |_| {}).expect("measured");
    println!("{}", words(&tuned));
    assert_eq!(tuned.candidates[0].choice, slow);
    assert_ne!(tuned.choice, slow);

    let better = tuner.attention().plan(&problem).expect("a plan");
    let ratio = timing::ratio(&problem, [&plan, &better], 0.5);
    println!("planted {slow}, found {}: {ratio:.3} of its time", tuned.choice);
    assert!(ratio <= 0.8, "{ratio}");
}

/// A method that options exclude is no candidate and no pick.
#[test]
fn what_is_excluded_is_not_measured() {
    let problem = Problem::new(Shape::self_attention(1, 2, 60, 16));
    let taken = gpu().planner().plan(&problem).expect("a plan").method();
    let attention = gpu().planner().clone().without(taken);
    let gpu = gpu().clone().with_attention(attention);
    let tuned = Tuner::new(&gpu).measure(&problem, |_| {}).expect("measured");
    assert!(tuned.candidates.iter().all(|candidate| candidate.choice.method != Some(taken)));
    let plan = gpu.planner().plan_with(&problem, tuned.choice).expect("a plan");
    assert_ne!(plan.method(), taken);
}

/// What was compiled for a tuning is there for the plans that use it; by hand it is not looked up.
#[test]
fn a_choice_by_hand_wins() {
    let problem = Problem::new(Shape::self_attention(1, 2, 60, 16));
    let class = Class::of(&problem).expect("valid");
    let staged = Choice::method(Method::Staged);
    let planner = gpu().planner().clone().with_tuning(Tuning::default().with(class, staged));
    assert_eq!(planner.plan(&problem).expect("a plan").method(), Method::Staged);
    let flash = planner.plan_with(&problem, Choice::method(Method::Flash)).expect("a plan");
    assert_eq!(flash.method(), Method::Flash);
    // The class of other lengths is another one.
    let longer = Problem::new(Shape::self_attention(1, 2, 65, 16));
    assert_ne!(planner.plan(&longer).expect("a plan").method(), Method::Staged);
}

/// On a driver that ends long loops silently, a planner that is told it does not lets kernels be wrong:
/// they do not race, however fast they are.
#[test]
fn what_is_wrong_does_not_win() {
    let _turn = quiet();
    let attention =
        Attention::with(gpu().device(), Options::default().loop_limit(LoopLimit::Unlimited));
    let gpu = gpu().clone().with_attention(attention);
    // Few rows are split all the same, and so right.
    let problem = Problem::new(Shape::self_attention(1, 1, 1, 64).kv_len(60_000));
    let mut tuner = Tuner::new(&gpu).with_settings(unhurried());
    let tuned = tuner.measure(&problem, |_| {}).expect("measured");
    println!("{}", words(&tuned));
    let wrong = |c: &&Candidate| matches!(c.outcome, Outcome::Wrong);
    let wrong: Vec<Choice> = tuned.candidates.iter().filter(wrong).map(|c| c.choice).collect();
    assert!(!wrong.contains(&tuned.choice));
    let info = gpu.device().adapter_info();
    let ends_loops = info.name.starts_with("llvmpipe") && info.driver_info.contains("Mesa 22.");
    println!("wrong: {wrong:?}; loops end early here: {ends_loops}");
    assert_eq!(wrong.contains(&Choice::method(Method::Staged)), ends_loops);
}
