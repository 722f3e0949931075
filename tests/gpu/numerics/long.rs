//! Calls so long that something else breaks first: loops that a driver ends, and scores that do
//! not fit a binding.

use wgpu_attention::{Error, Gpu, LoopLimit, Method, Output, Problem, Shape, cpu};

use crate::checks::{EVERYTHING, FLASH, LSE, STAGED};
use crate::kernels::{DECODE, broadcast};
use crate::support::{Data, default_limits_gpu, gpu, max_error};

const KEYS: u32 = 200_003;

/// 200,003 keys. Unlimited loops on a driver that ends them early must give wrong results: else
/// this test would prove nothing there.
#[test]
#[ignore = "exhaustive"]
fn exhaustive_two_hundred_thousand_keys() {
    let problem = Problem::new(Shape::self_attention(1, 2, 17, 4).kv_len(KEYS));
    all_keys_count(&problem, &Data::new(&problem, 7));
}

/// With a mask that hides every third key and some whole tiles.
#[test]
fn two_hundred_thousand_keys_and_a_mask() {
    let problem = Problem::new(Shape::self_attention(1, 2, 17, 4).kv_len(KEYS)).mask_shape(&[KEYS]);
    let mut data = Data::new(&problem, 7);
    let may = |j: u32| !j.is_multiple_of(3) && !(j / 128).is_multiple_of(7);
    data.given.mask = Some((0..KEYS).map(may).collect());
    all_keys_count(&problem, &data);
}

/// Nearly all of them in the last one of packed sequences, with a bias.
#[test]
fn two_hundred_thousand_packed_keys() {
    let problem = Problem::new(Shape::self_attention(1, 2, 17, 4).kv_len(KEYS));
    let problem = problem.packed(2).bias_shape(&[KEYS]);
    let mut data = Data::new(&problem, 7);
    data.given.cu_seqlens = Some([vec![0, 1, 17], vec![0, 300, KEYS]]);
    all_keys_count(&problem, &data);
}

/// Heads of 64: loops over their quads are long enough to matter if they are not unrolled.
#[test]
#[ignore = "exhaustive"]
fn exhaustive_two_hundred_thousand_keys_of_64() {
    let problem = Problem::new(Shape::self_attention(1, 1, 17, 64).kv_len(KEYS));
    all_keys_count(&problem, &Data::new(&problem, 7));
}

fn all_keys_count(problem: &Problem, data: &Data) {
    let want = cpu::attention(&LSE(problem.clone()), data.inputs()).expect("a good call");
    let errors = |got: &Output| {
        let lse = |output: &Output| output.lse.clone().expect("wanted");
        (max_error(&got.o, &want.o), max_error(&lse(got), &lse(&want)))
    };
    let unlimited = gpu().planner().clone().with_loop_limit(LoopLimit::Unlimited);
    let unlimited = gpu().clone().with_attention(unlimited);
    let info = gpu().device().adapter_info();
    for (name, choice, wants) in [
        ("fused", FLASH, LSE),
        ("broadcast", broadcast(1, 8), LSE),
        ("broadcast, two rows", broadcast(2, 4), LSE),
        ("decode", DECODE, LSE),
        ("staged", STAGED, EVERYTHING),
    ] {
        let wanted = wants(problem.clone());
        let got = gpu().attention_with(&wanted, data.inputs(), choice).expect(name);
        let (o, lse) = errors(&got);
        println!("{name}, 200,003 keys: error {o:e}, LSE {lse:e}");
        // The LSE is about 12.7: a rounding of it is 1e-6.
        assert!(o <= 1e-6 && lse <= 4e-6, "{name}: {o:e}, LSE {lse:e}");

        let split = |gpu: &Gpu| {
            let plan = gpu.planner().plan_with(&wanted, choice).expect(name);
            plan.describe().split_keys
        };
        // `broadcast` splits long rows for their digits too.
        // A thread of `decode` sweeps so few keys that it needs no limit here.
        if choice == DECODE || split(gpu()).is_none() || split(&unlimited).is_some() {
            println!("{name}, loops unlimited: skipped on {}", info.driver_info);
            continue;
        }
        let got = unlimited.attention_with(&wanted, data.inputs(), choice).expect(name);
        let (o, lse) = errors(&got);
        println!("{name}, loops unlimited: error {o:e}, LSE {lse:e}");
        assert!(o > 1e-4, "{name}: right without the limit; does {} need it?", info.driver_info);
    }
}

/// 8 heads x 4096 tokens: the fused kernel needs no scores; stored, they need 512 MiB.
#[test]
#[ignore = "exhaustive"]
fn exhaustive_stored_scores_would_not_fit() {
    let problem = Problem::new(Shape::self_attention(1, 8, 4096, 64)).lse();
    let data = Data::new(&problem, 8);
    let gpu = default_limits_gpu();
    let refused = gpu.planner().plan_with(&problem, STAGED).map(|plan| plan.method());
    let limit = Error::Limit { what: "stored scores", need: 512 << 20, got: 128 << 20 };
    assert_eq!(refused, Err(limit));
    let default = gpu.planner().plan(&problem).map(|plan| plan.method());
    assert_eq!(default, Ok(Method::Flash));
    let got = gpu.attention(&problem, data.inputs()).expect("fits");
    let (mut worst, lse) = (0.0f64, got.lse.expect("wanted"));
    for at in 0..64u32 {
        let (head, i) = (at % 8, (at * 2011 + 63) % 4096);
        let want = cpu::row(&problem, data.inputs(), [0, head, i]).expect("a row");
        let row = (head * 4096 + i) as usize;
        let errors = got.o[row * 64..][..64].iter().zip(&want.o);
        worst = errors.fold(worst, |worst, (got, want)| worst.max((f64::from(*got) - want).abs()));
        assert!((f64::from(lse[row]) - want.lse).abs() < 4e-6, "head {head}, query {i}");
    }
    println!("8 x 4096 x 64, 64 rows: error {worst:e}");
    assert!(worst < 2e-6, "{worst:e}");
}
