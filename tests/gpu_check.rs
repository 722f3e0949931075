//! The GPU check without a GPU: its kernels, its arithmetic, its report.

#[path = "../examples/gpu_check/case.rs"]
mod case;
#[path = "../examples/gpu_check/line.rs"]
mod line;
#[path = "../examples/gpu_check/pace.rs"]
mod pace;
#[path = "../examples/gpu_check/report.rs"]
mod report;
#[path = "../examples/gpu_check/shaders.rs"]
mod shaders;

use std::time::Duration;

use case::{Case, by_importance};
use line::{Error, Line, Outcome, PLANNED, Peaks, Times, fit};
use pace::{Pace, expected};
use report::Report;
use wgpu::naga;
use wgpu_attention::Element;

const PEAKS: Peaks = Peaks { f32: Some(1e12), f16: None, matrix: Some(8e12), read: Some(500e9) };

fn report(lines: Vec<Line>) -> Report {
    let facts = vec![("adapter".into(), "a card".into())];
    Report { facts, peaks: PEAKS, lines, notes: vec!["a note".into()], finished: true }
}

fn prefill(keys: u32) -> Case {
    let is_it = |case: &&Case| {
        !case.is_decode()
            && (case.keys, case.dim, case.element) == (keys, 128, Element::F32)
            && !case.causal
    };
    *by_importance(false).iter().find(is_it).expect("a case")
}

fn timed(case: Case, by: &str, seconds: f64) -> Line {
    let times = Times { median: seconds, best: seconds / 2.0, calls: 7 };
    let error = Some(Error { found: 1e-6, allowed: 1e-5 });
    let [asked, by] = [by.to_string(), by.to_string()];
    Line { case, asked, by, ours: true, outcome: Outcome::Timed(times, error) }
}

#[test]
fn kernels_are_valid() {
    let matrices = [8, 16].map(shaders::matrix);
    let others =
        [shaders::multiply_adds(false), shaders::multiply_adds(true), shaders::bandwidth()];
    for wgsl in matrices.into_iter().chain(others) {
        let module = naga::front::wgsl::parse_str(&wgsl);
        let module = module.unwrap_or_else(|e| panic!("{}", e.emit_to_string(&wgsl)));
        let all = naga::valid::Capabilities::all();
        let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), all);
        validator.subgroup_stages(naga::valid::ShaderStages::COMPUTE);
        validator.subgroup_operations(naga::valid::SubgroupOperationSet::all());
        let valid = validator.validate(&module);
        let info = valid.unwrap_or_else(|e| panic!("{}", e.emit_to_string(&wgsl)));
        let options = naga::back::spv::Options::default();
        let words = naga::back::spv::write_vec(&module, &info, &options, None);
        assert!(words.is_ok(), "{words:?}");
    }
}

/// What a kernel does is stated beside it, and here counted.
#[test]
fn kernels_do_what_is_stated() {
    let times = |text: &str, what: &str| text.matches(what).count() as f64;
    let adds = shaders::multiply_adds(false);
    let (each, trips) = (times(&adds, "* a + b;"), 2048.0);
    assert!(adds.contains("i < 2048u") && adds.contains("@workgroup_size(64)"));
    assert_eq!(shaders::MULTIPLY_ADDS, 64.0 * trips * each * 4.0 * 2.0);
    let matrix = shaders::matrix(16);
    assert!(matrix.contains("i < 256u"));
    let products = 256.0 * times(&matrix, "= coopMultiplyAdd(");
    assert_eq!(shaders::matrix_operations(16), products * 2.0 * 16.0 * 16.0 * 16.0);
    let read = shaders::bandwidth();
    assert!(read.contains("i < 32u; i += 4u") && read.contains("@workgroup_size(256)"));
    assert_eq!(shaders::BANDWIDTH as f64, 256.0 * 32.0 / 4.0 * times(&read, "+= data[") * 16.0);
}

#[test]
fn work_is_counted() {
    let case = prefill(4096);
    assert_eq!(case.operations(), 4.0 * 16.0 * 4096.0 * 4096.0 * 128.0);
    let causal = Case { causal: true, ..case };
    assert_eq!(causal.operations(), 4.0 * 16.0 * 128.0 * 4096.0 * 4097.0 / 2.0);
    let decode = by_importance(false).into_iter().find(Case::is_decode).expect("decode");
    assert_eq!((decode.batch, decode.keys, decode.element), (1, 16_384, Element::F16));
    assert_eq!(decode.bytes(), 2.0 * 8.0 * 16_384.0 * 128.0 * 2.0);
    assert_eq!(decode.name(), "decode, 1 x 32:8 heads of 128, 16384 keys, f16");
    assert_eq!(causal.name(), "4096 tokens, 16 heads of 128, f32, causal");
    let line = timed(case, "Flash", 0.5);
    assert_eq!(line.rate(), Some(case.operations() / 0.5));
    assert_eq!(line.share_of_f32(&PEAKS), Some(case.operations() / 0.5 / 1e12));
    assert_eq!(line.share_of_matrix(&PEAKS), None, "those are of f16");
    let other = Peaks { f32: Some(2e12), f16: Some(1.0), ..Peaks::default() };
    let best = PEAKS.best(other);
    assert_eq!([best.f32, best.f16, best.matrix], [Some(2e12), Some(1.0), Some(8e12)]);
}

#[test]
fn every_case_once() {
    let cases = by_importance(false);
    for dim in [64, 128] {
        for keys in [512, 1024, 2048, 4096, 8192, 16_384] {
            let of = cases.iter().filter(|c| !c.is_decode() && (c.dim, c.keys) == (dim, keys));
            assert_eq!(of.count(), 4, "f32 and f16, causal or not");
        }
    }
    for (at, case) in cases.iter().enumerate() {
        assert!(!cases[..at].contains(case), "{case:?} twice");
        assert!(case.problem().validate().is_ok(), "{case:?}");
    }
    assert_eq!(cases.iter().filter(|case| case.is_decode()).count(), 8);
}

#[test]
fn long_calls_are_left_out() {
    // A century: never over, however slow this is.
    let all = u32::MAX.into();
    let pace = Pace::new(all);
    let (before, left, after) = (pace.elapsed(), pace.left(), pace.elapsed());
    assert!(before + left <= Duration::from_secs(all) && Duration::from_secs(all) <= left + after);
    let [short, long] = [512, 16_384].map(prefill);
    let empty = report(vec![]);
    assert_eq!(pace.refuses(&short, "Flash", &empty), None);
    assert!(pace.refuses(&long, "Flash", &empty).is_some(), "a guess by the peak");
    // 2 TFLOP/s, and a slower method.
    let rate = |rate: f64| prefill(2048).operations() / rate;
    let lines = vec![timed(prefill(2048), "A", rate(2e12)), timed(prefill(2048), "B", rate(5e11))];
    let known = report(lines);
    assert!((expected(&long, "A", &known) - long.operations() / 2e12).abs() < 1e-9);
    assert!((expected(&long, "new", &known) - long.operations() / 5e11).abs() < 1e-9);
    assert!(pace.refuses(&long, "B", &known).is_some());
    assert_eq!(pace.refuses(&prefill(4096), "A", &known), None);
    assert!(Pace::new(0).refuses(&short, "A", &known).is_some_and(|why| why.contains("0 s")));
}

#[test]
fn wrong_answers_show() {
    let case = prefill(512);
    let wrong = Outcome::Wrong(Error { found: f64::INFINITY, allowed: 1e-5 });
    let mut report = report(vec![timed(case, "Flash, 64 x 32", 0.001)]);
    assert!(report.is_good());
    report.lines.push(Line { outcome: wrong, ..timed(case, "Other", 0.1) });
    report.lines.push(Line {
        outcome: Outcome::Failed("lost | in\ntwo lines".into()),
        ..timed(case, "Third", 0.1)
    });
    report.lines.push(Line { ours: false, ..timed(case, "PyTorch, flash", 0.0005) });
    assert!(!report.is_good());
    assert_eq!(report.verdict(), "1 right, 1 wrong, 1 failed, 0 left out");
    let text = report.markdown();
    assert!(text.contains("**WRONG** inf, allowed 1.0e-5"), "{text}");
    assert!(text.contains("**FAILED** lost / in two lines"), "{text}");
    let peer = text.lines().find(|line| line.contains("PyTorch, flash")).expect("a line");
    assert!(peer.contains("| 0.50 |"), "half our time: {peer}");
    let table: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
    let cells = |line: &&str| line.matches('|').count();
    assert!(table.iter().all(|line| cells(line) == cells(&table[0])), "{text}");
    assert!(!Error { found: f64::NAN, allowed: 1.0 }.is_right());
}

#[test]
fn the_default_is_marked() {
    let by_hand = timed(prefill(512), "Flash, 64 x 64", 1e-3);
    let planned = Line { asked: PLANNED.into(), ..by_hand.clone() };
    let left_out = Line { by: PLANNED.into(), ..planned.clone() };
    let report = report(vec![]);
    let marked = |line| report.row(line).contains("(default)");
    assert!(marked(&planned) && !marked(&by_hand) && !marked(&left_out));
}

#[test]
fn json_says_the_same() {
    let case = prefill(512);
    let report = report(vec![timed(case, "Flash", 0.25)]);
    let json: serde_json::Value = serde_json::from_str(&report.json().to_string()).expect("JSON");
    assert_eq!(json["finished"], true);
    assert_eq!(json["facts"]["adapter"], "a card");
    assert_eq!(json["peaks"]["f16_operations_per_s"], serde_json::Value::Null);
    let line = &json["lines"][0];
    assert_eq!((&line["asked"], &line["result"]), (&"Flash".into(), &"timed".into()));
    assert_eq!(line["case"]["type"], "f32");
    assert_eq!(line["operations_per_s"], case.operations() / 0.25);
    assert_eq!(line["calls"], 7);
    assert_eq!(line["times_ours"], 1.0);
}

#[test]
fn nothing_answered_is_not_good() {
    assert!(!report(vec![]).is_good());
    let left = Outcome::LeftOut("no time".into());
    let line = Line { outcome: left, ..timed(prefill(512), "Flash", 1.0) };
    assert!(!report(vec![line]).is_good());
}

#[test]
fn timestamps_must_fit_the_wall_clock() {
    assert!(fit(&[0.03, 0.03], 0.07));
    assert!(fit(&[1e-5], 1e-3), "a short call, and what surrounds it");
    assert!(!fit(&[1e-5, 1e-5], 0.07), "they do not wait for the work");
    assert!(!fit(&[0.03, 0.0], 0.035));
    assert!(!fit(&[10.0], 0.07), "of another unit");
}
