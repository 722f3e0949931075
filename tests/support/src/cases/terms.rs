//! What is added to scores and to their sums: ALiBi and sinks.

use wgpu_attention::{Align, Band, Problem};

use super::{Case, case, shape, usual};

pub fn all() -> Vec<Case> {
    let aligns = [
        Align::TopLeft,
        Align::BottomRight,
        Align::Shift(7),
        Align::Shift(-30),
        Align::Shift(100),
        Align::Shift(1 << 30),
    ];
    // The largest shift with a slope that leaves differences.
    let slopes = |align| match align {
        Align::Shift(shift) if shift > 1000 => [0.0, 2e-9, -2e-9, 1e-9],
        _ => [0.5, 0.0625, -0.25, 0.0],
    };
    let alibi = |name: String, problem: Problem, slopes: &[f32]| {
        case(format!("ALiBi, {name}"), problem).alibi(slopes)
    };
    let mut all = Vec::new();
    for align in aligns {
        let slopes = &slopes(align);
        all.push(alibi(format!("{align:?}"), usual().align(align), slopes));
        all.push(alibi(format!("causal, {align:?}"), usual().causal().align(align), slopes));
    }
    let square = Problem::new(shape([2, 4, 2, 40, 40, 8, 8]));
    let band = Band { left: Some(20), right: Some(3) };
    let tl = || usual().align(Align::TopLeft);
    all.extend([
        alibi("no alignment".into(), square.clone(), &[1.0, 0.1]),
        alibi("no alignment, causal".into(), square.causal(), &[1.0, 0.1]),
        alibi("slopes 0".into(), tl(), &[0.0]),
        alibi("slopes -0".into(), tl(), &[-0.0]),
        alibi("steep".into(), tl(), &[30.0, -3.0]),
        alibi("softcap".into(), tl().softcap(2.0), &[0.5, -0.25]),
        alibi("band".into(), tl().band(band), &[0.5, -0.25]),
        Case { excluded: 4, ..alibi("bias".into(), tl().bias_shape(&[21, 75]), &[0.5, -0.25]) },
        Case {
            excluded: 4,
            ..alibi(
                "softcap, bias, scale 0".into(),
                tl().bias_shape(&[4, 1, 75]).softcap(3.0).scale(0.0),
                &[0.5, -0.25],
            )
        },
    ]);
    all.extend(sinks());
    all
}

fn sinks() -> Vec<Case> {
    const NONE: f32 = f32::NEG_INFINITY;
    let sink = |name: &str, problem: Problem, sinks: &[f32]| {
        case(format!("sinks, {name}"), problem).sinks(sinks)
    };
    let fewer = Problem::new(shape([1, 4, 2, 40, 17, 8, 8]));
    vec![
        sink("small", usual(), &[0.0, 0.5, -0.5, 1.0]),
        sink("large", usual(), &[50.0, 200.0, 1e4, f32::MAX]),
        sink("negative", usual(), &[-5.0, -200.0, -1e30, f32::MIN]),
        sink("none", usual(), &[NONE]),
        sink("mixed", usual(), &[NONE, 1.0, f32::MIN, 3.0]),
        sink("large scores", usual().scale(30.0), &[100.0, -100.0, 0.0, NONE]),
        sink("rows without keys", fewer.clone().causal().align(Align::BottomRight), &[2.0, NONE]),
        sink(
            "huge, rows without keys",
            fewer.causal().align(Align::BottomRight),
            &[f32::MAX, -3.0],
        ),
        sink("no keys", Problem::new(shape([1, 4, 2, 21, 0, 8, 8])), &[2.0, NONE, 0.0, -1e30]),
        sink("causal", usual().causal().align(Align::TopLeft), &[1.0, -1.0, 0.0]),
        sink("softcap", usual().softcap(3.0), &[1.0, -1.0]),
        Case { excluded: 2, ..sink("bias", usual().bias_shape(&[21, 75]), &[1.0, -1.0]) },
        sink("ALiBi", usual().align(Align::BottomRight), &[1.0, -1.0]).alibi(&[0.5, 0.1]),
        sink("one query", Problem::new(shape([3, 4, 1, 1, 140, 8, 8])), &[4.0, 0.0, NONE, -4.0]),
    ]
}
