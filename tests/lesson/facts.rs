//! Each statement of the lesson, by the functions that the example `lesson_facts` prints from.

use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_distr::StandardNormal;
use wgpu_attention::{Inputs, Problem, Shape, cpu};

use super::attend;
use super::context::Context;
use super::cost::Cost;
use super::order::{Order, dog_bites_man, shuffled};
use super::saturation::{Saturation, Softness, gradient, quantile};
use super::spread::{KINDS, NORMAL, Spread};
use wgpu_attention_support::lesson::demo::Demo;
use wgpu_attention_support::lesson::tokens::Tokens;

/// As many independent dot products as sequences: one query and one key each.
fn pairs(count: u32, dim: u32) -> Shape {
    Shape { value_dim: 1, ..Shape::self_attention(count, 1, 1, dim) }
}

#[test]
fn dot_products_spread_by_the_root_of_the_dim() {
    let demo = Demo::load();
    for kind in KINDS {
        let name = kind.name.replace('/', "~1");
        let number =
            |name: &str, part: &str| demo.numbers(&format!("/dot_product_spread/{name}{part}"))[0];
        let part = format!("monte_carlo/{name}");
        let draws = number(&part, "/draws") as u32;
        let spread = Spread::measure(kind, pairs(draws, 64), &attend).expect("scores");
        let tolerance = number(&part, "/tolerance_5se");
        let before = spread.before - number("other_dims", "/64");
        assert!(before.abs() <= tolerance, "{name}: {spread}");
        let tolerance = number(&part, "/tolerance_after_scaling_5se");
        assert!((spread.after - 1.0).abs() <= tolerance, "{name}: {spread}");
    }
}

#[test]
fn the_spread_grows_with_every_dim() {
    let demo = Demo::load();
    for dim in [2, 16, 32, 128, 256, 512] {
        let draws = 20_000;
        let spread = Spread::measure(NORMAL, pairs(draws, dim), &attend).expect("scores");
        // Five standard errors of a standard deviation; the kurtosis of q . k is 3 + 6 / dim.
        let tolerance = 5.0 * ((2.0 + 6.0 / f64::from(dim)) / (4.0 * f64::from(draws))).sqrt();
        let want = demo.numbers(&format!("/dot_product_spread/other_dims/{dim}"))[0];
        assert!((spread.before / want - 1.0).abs() <= tolerance, "{spread}");
        assert!((spread.after - 1.0).abs() <= tolerance, "{spread}");
    }
}

#[test]
fn undivided_scores_saturate_the_softmax() {
    let demo = Demo::load();
    for keys in [6, 16, 64] {
        let part = |name: &str| demo.numbers(&format!("/saturation_d64/{keys}/{name}"))[0];
        let trials = part("trials") as u32;
        let Saturation { unscaled, scaled, .. } =
            Saturation::measure(trials, keys, &attend).expect("weights");
        for (softness, name) in [(&unscaled, "unscaled"), (&scaled, "scaled")] {
            // Five standard errors of the difference of two such means.
            let near = |got: f64, mean: &str, error: &str| {
                let want = part(&format!("{name}/{mean}"));
                let most = 5.0 * 2f64.sqrt() * part(&format!("{name}/{error}"));
                assert!((got - want).abs() <= most, "{keys} keys, {name}, {mean}: {got}, {want}");
            };
            near(softness.max_weight, "mean_max_weight", "se");
            near(softness.entropy, "mean_entropy_nats", "se_entropy");
            assert!(softness.entropy < part("uniform_entropy"));
        }
        the_gradient_vanishes(&unscaled, &scaled);
    }
}

/// Unscaled, a key in the middle has hardly a thousandth of the scaled gradient, and in one query
/// of ten all keys together have less than a thirtieth; scaled, no query is so far from the rest.
fn the_gradient_vanishes(unscaled: &Softness, scaled: &Softness) {
    let own = [unscaled, scaled].map(|softness| quantile(&softness.own, 0.5));
    assert!(own[0] < 1e-3 * own[1], "{own:?}");
    let tenth = [unscaled, scaled].map(|softness| quantile(&softness.norms, 0.1));
    assert!(tenth[0] < tenth[1] / 30.0, "{tenth:?}");
    assert!(tenth[1] > 0.5 * quantile(&scaled.norms, 0.5), "{tenth:?}");
}

#[test]
fn the_gradient_is_the_softmax_s() {
    for n in [1, 2, 6, 64] {
        let (equal, n) = (vec![1.0 / n as f32; n], n as f64);
        assert!((gradient(&equal) - (n - 1.0).sqrt() / n).abs() < 1e-7, "{n} equal weights");
    }
    assert_eq!(gradient(&[0.0, 1.0, 0.0]), 0.0);

    // Against differences: each score pushed up and down by a bias, weights in f64.
    let tokens = Tokens::demo(&Demo::load());
    let problem = Problem::new(tokens.shape()).bias_shape(&[6]);
    let weights = |key: usize, push: f32| {
        let mut bias = [0.0; 6];
        bias[key] = push;
        let inputs = Inputs::new(&tokens.q, &tokens.k, &tokens.v).bias(&bias);
        cpu::row(&problem, inputs, [0, 0, 2]).expect("a row").weights
    };
    let push = 1.0 / 1024.0; // Exact, so that the bias moves the score by just this.
    let column = |key: usize| {
        let (up, down) = (weights(key, push), weights(key, -push));
        let slope = |(a, b): (&f64, &f64)| ((a - b) / f64::from(2.0 * push)).powi(2);
        up.iter().zip(&down).map(slope).sum::<f64>()
    };
    let differences = (0..6).map(column).sum::<f64>().sqrt();
    let narrow: Vec<f32> = weights(0, 0.0).iter().map(|&p| p as f32).collect();
    assert!((gradient(&narrow) / differences - 1.0).abs() < 1e-5, "{differences}");
}

#[test]
fn order_changes_nothing_without_a_mask() {
    let demo = Demo::load();
    let number = |name: &str| demo.numbers(&format!("/permutation/{name}"));
    let demo_order: Vec<_> = number("permutation").iter().map(|&i| i as usize).collect();
    let mut backwards: Vec<_> = (0..257).collect();
    backwards.reverse();
    let cases = [
        (dog_bites_man(), vec![2, 1, 0], 1.5e-7),
        (Tokens::demo(&demo), demo_order.clone(), number("demo_max_diff_f32")[0]),
        (random(257, 64), backwards, number("random_257x64/f32")[0]),
    ];
    for (tokens, order, most) in &cases {
        let plain = Order::compare(tokens, order, false, &attend).expect("outputs");
        assert!(f64::from(plain.difference()) <= *most, "{plain}");
        let causal = Order::compare(tokens, order, true, &attend).expect("outputs");
        assert!(causal.difference() > 0.1, "{causal}");
    }
    let causal = Order::compare(&cases[1].0, &demo_order, true, &attend).expect("outputs");
    let want = number("causal_breaks_it_max_diff")[0];
    assert!((f64::from(causal.difference()) - want).abs() < 1e-6, "{causal}");

    // Keys and values in another order, queries where they were.
    let tokens = &cases[1].0;
    let other = Tokens { q: tokens.q.clone(), ..shuffled(tokens, &demo_order) };
    let [first, second] = [tokens, &other].map(|tokens| {
        let inputs = Inputs::new(&tokens.q, &tokens.k, &tokens.v);
        attend(&Problem::new(tokens.shape()), inputs).expect("outputs").o
    });
    assert!(first.iter().zip(&second).all(|(a, b)| (a - b).abs() < 1.5e-7));
}

fn random(count: usize, dim: usize) -> Tokens {
    let mut rng = StdRng::seed_from_u64(count as u64);
    let mut part = || (&mut rng).sample_iter(StandardNormal).take(count * dim).collect::<Vec<_>>();
    let (q, k, v) = (part(), part(), part());
    Tokens { words: (0..count).map(|i| i.to_string()).collect(), q, k, v, dim }
}

#[test]
fn one_word_in_two_sentences_gets_two_vectors() {
    let context = Context::compare(&attend).expect("outputs");
    // By hand: the weight of the neighbour is 1 / (1 + e^d), d the difference of the two scores.
    let mixed = |neighbour: [f64; 4], own: f64, other: f64| {
        let bank = [1.0, 1.0, 1.0, 0.2];
        let weight = 1.0 / (1.0 + ((own - other) / 2.0).exp());
        [0, 1, 2, 3].map(|c| bank[c] + weight * (neighbour[c] - bank[c]))
    };
    let river_bank = mixed([2.0, 0.0, 0.5, 0.0], 3.04, 2.5);
    let bank_account = mixed([0.0, 2.0, 0.0, 1.0], 3.04, 2.2);
    for (got, want) in [(&context.river_bank, &river_bank), (&context.bank_account, &bank_account)]
    {
        assert_eq!(got.len(), 4);
        let apart = got.iter().zip(want).map(|(&got, want)| (f64::from(got) - want).abs());
        assert!(apart.fold(0.0, f64::max) < 1e-6, "{context}");
    }
    assert!((0.70..0.80).contains(&context.similarity()), "{context}");
    let [own, river, account] = context.neighbours();
    assert!(river.0 > own.0 && river.1 < own.1 && account.0 < own.0 && account.1 > own.1);
}

#[test]
fn twice_the_tokens_make_four_times_the_scores() {
    let demo = Demo::load();
    let part = |name: &str, n: u32| demo.numbers(&format!("/cost/{name}/{n}"))[0];
    for n in [6, 12, 64, 128, 256, 512, 1024, 2048, 4096, 8192] {
        let cost = Cost::of(n);
        assert_eq!((cost.tokens, cost.scores as f64), (n, part("scores", n)));
        assert_eq!(cost.ratios[0], demo.numbers("/cost/ratio_on_doubling")[0]);
    }
    for n in [6, 12, 64, 128, 1024, 2048] {
        let formula = Cost::of(n).causal;
        assert_eq!(formula as f64, part("causal_scores_n_n1_over_2", n));
        // Counted: what a causal call leaves in the scores.
        let problem = Problem::new(Shape::self_attention(1, 1, n, 1)).causal().scores();
        let x = vec![0.0; n as usize];
        let scores = attend(&problem, Inputs::new(&x, &x, &x)).expect("scores").scores;
        let seen = scores.expect("scores").iter().filter(|score| score.is_finite()).count();
        assert_eq!(seen as u64, formula, "{n} tokens");
    }
    for n in [6, 64, 1024] {
        let ratio = Cost::of(2 * n).ratios[1];
        assert!((ratio - part("causal_ratio_on_doubling", n)).abs() < 1e-12, "{n}: {ratio}");
    }
    for n in [512, 1024, 2048, 4096] {
        assert_eq!(Cost::of(n).flops as f64, part("matmul_flops_d64", n));
    }
    for n in [1024, 2048, 4096, 8192] {
        assert_eq!(Cost::of(n).bytes as f64, part("score_bytes_f32", n));
    }
}
