//! The CPU reference and its f32 twin against results from elsewhere. Needs no GPU.

use wgpu_attention::{Tile, cpu};
use wgpu_attention_support::golden::{self, Case};
use wgpu_attention_support::reports;
use wgpu_attention_support::sentence::{CLAIMS, Layer, Sentence, WORD};

#[test]
fn cases_on_the_cpu() {
    let cases = golden::load();
    let mut wrong = Vec::new();
    for case in &cases {
        let output = cpu::attention(&case.problem, case.inputs()).expect(&case.name);
        wrong.extend(case.check(&output).err().map(|why| format!("reference, {why}")));
        wrong.extend(unrounded(case).err());
        if case.nonfinite {
            continue;
        }
        for tile in [Tile { queries: 32, keys: 32 }, Tile { queries: 16, keys: 64 }] {
            let twin = cpu::flash(&case.problem, case.inputs(), tile, Some(64));
            let twin = twin.expect(&case.name);
            wrong.extend(case.check(&twin).err().map(|why| format!("twin, {tile:?}, {why}")));
        }
    }
    let nonfinite = cases.iter().filter(|case| case.nonfinite).count();
    assert_eq!((cases.len(), nonfinite), (46, 3));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What went wrong elsewhere, with keys split and not.
#[test]
fn reports_on_the_cpu() {
    let reports = reports::load();
    let mut wrong = Vec::new();
    for reports::Report { case, types } in &reports {
        let output = cpu::attention(&case.problem, case.inputs()).expect(&case.name);
        wrong.extend(case.check(&output).err().map(|why| format!("reference, {why}")));
        for split in [None, Some(8)] {
            let tile = Tile { queries: 8, keys: 8 };
            let twin = cpu::flash(&case.problem, case.inputs(), tile, split).expect(&case.name);
            wrong.extend(
                case.check(&twin).err().map(|why| format!("twin, {split:?}, {types:?}, {why}")),
            );
        }
    }
    assert_eq!(reports.len(), 9);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The reference before it rounds to f32: both sides are f64 there.
fn unrounded(case: &Case) -> Result<(), String> {
    let shape = case.problem.shape();
    let (mut out, mut lse) = (Vec::new(), Vec::new());
    for batch in 0..shape.batch {
        for head in 0..shape.q_heads {
            for query in 0..shape.q_len {
                let row = cpu::row(&case.problem, case.inputs(), [batch, head, query]);
                let row = row.expect(&case.name);
                out.extend(row.o);
                lse.push(row.lse);
            }
        }
    }
    let [out, lse] = case.distance(&out, &lse)?;
    // The clamp of tanh's argument may show, and that a scale of 0.3 is no f32; nothing else does.
    let most = if case.name == "everything" { 1e-7 } else { 1e-10 };
    if out > most || lse > most {
        return Err(format!("{}, before rounding: out {out:.2e}, LSE {lse:.2e}", case.name));
    }
    Ok(())
}

#[test]
fn a_real_model_on_the_cpu() {
    let sentence = Sentence::load();
    let problem = Layer::problem().weights();
    let apart = |got: &[f32], want: &[f64]| {
        assert_eq!(got.len(), want.len());
        let apart = got.iter().zip(want).map(|(&got, want)| (f64::from(got) - want).abs());
        apart.fold(0.0, f64::max)
    };
    for layer in &sentence.layers {
        let output = cpu::attention(&problem, layer.inputs()).expect("a result");
        let out = apart(&output.o, &layer.out);
        let weights = apart(&output.weights.expect("weights"), &layer.weights);
        let number = layer.number;
        // One rounding to f32: half a unit in the last place, of numbers below 4 and below 1.
        assert!(out < 1.2e-7 && weights < 3e-8, "layer {number}: {out:.2e}, {weights:.2e}");
    }
}

#[test]
fn the_lesson_s_claims_hold() {
    let sentence = Sentence::load();
    for (number, head, token, percent) in CLAIMS {
        let layer = sentence.layer(number);
        let output = cpu::attention(&Layer::problem().weights(), layer.inputs()).expect("a result");
        let weights = output.weights.expect("weights");
        let (most, weight) = sentence.most(&weights, head);
        let got = (most, (100.0 * weight).round() as u32);
        assert_eq!(got, (token, percent), "{WORD}, layer {number}, in: {}", sentence.text);
    }
}
