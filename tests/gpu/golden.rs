//! Results from elsewhere: the golden cases and a real model, by both methods.

use wgpu_attention::{Choice, Error, Gpu, Method, Problem, cpu};
use wgpu_attention_support::golden;
use wgpu_attention_support::sentence::{CLAIMS, Layer, Sentence, WORD};

use crate::support;

const METHODS: [Method; 2] = [Method::Flash, Method::Staged];

#[test]
fn cases_on_the_adapter() {
    check_cases("the adapter's limits", support::gpu(), &METHODS, 3);
}

/// Other tiles: some of the cases.
#[test]
fn cases_with_default_limits() {
    check_cases("default limits", support::default_limits_gpu(), &METHODS, 12);
}

/// One in so many of the cases by each method, where it takes them: others by the next.
pub fn check_cases(limits: &str, gpu: &Gpu, methods: &[Method], step: usize) {
    let all = golden::load();
    let finite: Vec<_> = all.iter().filter(|case| !case.nonfinite).collect();
    assert_eq!((finite.len(), all.len()), (43, 46));
    let (mut ran, mut skipped) = (0, 0);
    let mut wrong = Vec::new();
    for (number, case) in finite.iter().enumerate() {
        let in_turn = methods.iter().enumerate().filter(|(at, _)| (number + at) % step == 0);
        for (_, &method) in in_turn {
            let choice = Choice::method(method);
            let output = gpu.attention_with(&case.problem, case.inputs(), choice);
            let checked = match output {
                Ok(output) => case.check(&output),
                Err(Error::Limit { .. }) if !METHODS.contains(&method) => {
                    skipped += 1;
                    continue;
                }
                Err(error) => Err(format!("{}: {error}", case.name)),
            };
            ran += 1;
            wrong.extend(checked.err().map(|why| format!("{method:?}, {why}")));
        }
    }
    println!("{limits}: {ran} ran, {skipped} skipped, of {methods:?} and finite cases");
    assert!(ran >= 43 / step * METHODS.len());
    assert!(wrong.is_empty(), "{limits}:\n{}", wrong.join("\n"));
}

#[test]
fn a_real_model() {
    let sentence = Sentence::load();
    for gpu in [support::gpu(), support::default_limits_gpu()] {
        sentence.layers.iter().for_each(|layer| check_layer(gpu, layer));
    }
}

fn check_layer(gpu: &Gpu, layer: &Layer) {
    let number = layer.number;
    let full = Layer::problem().lse().scores().weights();
    let staged = gpu.attention(&full, layer.inputs()).expect("staged");
    let fused =
        gpu.attention_with(&Layer::problem().lse(), layer.inputs(), Choice::method(Method::Flash));
    let fused = fused.expect("fused");
    let (scores, lse) = reference(&full, layer);
    let weights = staged.weights.as_deref().expect("weights");
    let parts: [(&str, &[f32], &[f64]); 6] = [
        ("staged out", &staged.o, &layer.out),
        ("staged weights", weights, &layer.weights),
        ("staged scores", staged.scores.as_deref().expect("scores"), &scores),
        ("staged LSE", staged.lse.as_deref().expect("LSE"), &lse),
        ("fused out", &fused.o, &layer.out),
        ("fused LSE", fused.lse.as_deref().expect("LSE"), &lse),
    ];
    for (part, got, want) in parts {
        let largest = want.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
        let narrow: Vec<f32> = want.iter().map(|&x| x as f32).collect();
        let error = f64::from(support::max_error(got, &narrow));
        assert!(error <= 1.5e-6 * largest, "layer {number}, {part}: {error:.2e} of {largest:.2}");
    }
}

#[test]
fn the_lesson_s_claims_hold() {
    let sentence = Sentence::load();
    for (number, head, token, percent) in CLAIMS {
        let layer = sentence.layer(number);
        let output = support::gpu().attention(&Layer::problem().weights(), layer.inputs());
        let weights = output.expect("a result").weights.expect("weights");
        let (most, weight) = sentence.most(&weights, head);
        let got = (most, (100.0 * weight).round() as u32);
        assert_eq!(got, (token, percent), "{WORD}, layer {number}, in: {}", sentence.text);
    }
}

/// Scores and LSE by definition; the file has neither.
fn reference(problem: &Problem, layer: &Layer) -> (Vec<f64>, Vec<f64>) {
    let shape = problem.shape();
    let (mut scores, mut lse) = (Vec::new(), Vec::new());
    for head in 0..shape.q_heads {
        for query in 0..shape.q_len {
            let row = cpu::row(problem, layer.inputs(), [0, head, query]).expect("a row");
            scores.extend(row.scores);
            lse.push(row.lse);
        }
    }
    (scores, lse)
}
