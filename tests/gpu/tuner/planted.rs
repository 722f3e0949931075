//! Choices that are planted: excluded, known, wrong.

use wgpu_attention::{
    Attention, Candidate, Choice, Class, Gpu, LoopLimit, Method, Options, Outcome, Problem, Shape,
    Tuning,
};

use super::{measured, noop, patient, small, two_methods, words};
use crate::support::gpu;

/// A method that options exclude is no candidate and no pick.
#[test]
fn what_is_excluded_is_not_measured() {
    let problem = small();
    let (device, queue) = wgpu::Device::noop(&Default::default());
    let gpu = Gpu::from_device(device, queue);
    let taken = gpu.planner().plan(&problem).expect("a plan").method();
    let without = gpu.planner().clone().without(taken);
    let gpu = gpu.with_attention(without);
    let tuned = patient(&gpu).measure(&problem, |_| {}).expect("measured");
    assert!(measured(&tuned) > 0);
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
    let planner = noop().with_tuning(Tuning::default().with(class, staged));
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
    let options = Options::default().loop_limit(LoopLimit::Unlimited);
    let attention = two_methods(Attention::with(gpu().device(), options));
    let gpu = gpu().clone().with_attention(attention);
    // Few rows are split all the same, and so right.
    let problem = Problem::new(Shape::self_attention(1, 1, 1, 64).kv_len(60_000));
    let tuned = patient(&gpu).measure(&problem, |_| {}).expect("measured");
    println!("{}", words(&tuned));
    let wrong = |c: &&Candidate| matches!(c.outcome, Outcome::Wrong);
    let wrong: Vec<Choice> = tuned.candidates.iter().filter(wrong).map(|c| c.choice).collect();
    assert!(!wrong.contains(&tuned.choice));
    let info = gpu.device().adapter_info();
    let ends_loops = info.name.starts_with("llvmpipe") && info.driver_info.contains("Mesa 22.");
    println!("wrong: {wrong:?}; loops end early here: {ends_loops}");
    assert_eq!(wrong.contains(&Choice::method(Method::Staged)), ends_loops);
}
