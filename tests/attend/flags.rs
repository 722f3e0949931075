//! Every flag: what it computes, that metadata says the same, and that the flag has the last word.

use wgpu_attention::{Align, Band, Inputs, Problem, Shape, cpu};

use super::made::{Made, Tensor};
use super::tool::{Folder, attend};

type Change = fn(Problem) -> Problem;

const WANT: &str = "out,lse,weights,scores";

/// Flags, the same as metadata, and the same by the library.
const ROWS: [(&[&str], &str, Change); 17] = [
    (&[], "{}", |p| p),
    (&["--scale", "0.7"], r#"{"scale": 0.7}"#, |p| p.scale(0.7)),
    (&["--scale", "-1.5"], r#"{"scale": -1.5, "softcap": 0}"#, |p| p.scale(-1.5)),
    (&["--scale", "0"], r#"{"scale": 0}"#, |p| p.scale(0.0)),
    (&["--softcap", "2.5"], r#"{"softcap": 2.5, "scale": null}"#, |p| p.softcap(2.5)),
    (&["--causal", "none"], r#"{"causal": "none"}"#, |p| p),
    (&["--causal", "top-left"], r#"{"causal": "top_left"}"#, |p| p.causal().align(Align::TopLeft)),
    (&["--causal", "bottom-right"], r#"{"causal": "bottom_right"}"#, |p| {
        p.causal().align(Align::BottomRight)
    }),
    (&["--causal", "bottom_right"], r#"{"causal": "bottom-right"}"#, |p| {
        p.causal().align(Align::BottomRight)
    }),
    (&["--causal", "top-left", "--shift", "3"], r#"{"causal": "top_left", "shift": 3}"#, |p| {
        p.causal().align(Align::Shift(3))
    }),
    (
        &["--causal", "bottom-right", "--shift", "-2"],
        r#"{"causal": "bottom_right", "shift": -2}"#,
        |p| p.causal().align(Align::Shift(-2)),
    ),
    (&["--shift", "5"], r#"{"shift": 5}"#, |p| p),
    (&["--window-left", "2"], r#"{"window_left": 2}"#, |p| band(p, Some(2), None, 0)),
    (&["--window-right", "1"], r#"{"window_right": 1, "window_left": -1}"#, |p| {
        band(p, None, Some(1), 0)
    }),
    (
        &["--window-left", "0", "--window-right", "4", "--shift", "2"],
        r#"{"window_left": 0, "window_right": 4, "shift": 2}"#,
        |p| band(p, Some(0), Some(4), 2),
    ),
    (
        &["--causal", "bottom-right", "--window-left", "3", "--window-right", "4"],
        r#"{"causal": "bottom_right", "window_left": 3, "window_right": 4}"#,
        |p| band(p, Some(3), Some(0), 4),
    ),
    (
        &["--window-left", "4294967295", "--window-right", "-1", "--softcap", "0"],
        r#"{"window_left": 4294967295, "alibi": false, "dropout": null}"#,
        |p| p,
    ),
];

fn band(problem: Problem, left: Option<u32>, right: Option<u32>, shift: i32) -> Problem {
    problem.band(Band { left, right }).align(Align::Shift(shift))
}

#[test]
fn each_flag_and_the_same_as_metadata() {
    let folder = Folder::new("flags");
    let base = folder.write("base.safetensors", &Made::usual().bytes());
    let [base, out] = [base, folder.path("out")].map(|path| path.display().to_string());
    let mut files = Vec::new();
    for (at, (flags, params, change)) in ROWS.iter().enumerate() {
        let basic = ["--backend", "cpu", "--want", WANT, "--out", &out, &base];
        let run = attend(basic.iter().chain(*flags)).ended(0);
        assert!(run.out.contains("4 computed by the CPU reference"), "{}", run.out);
        let results = Made::read(&folder.path("out/base.safetensors"));
        assert_eq!(results.tensors.len(), 4);
        assert_eq!(results.tensors, by_library(*change).tensors, "{flags:?}");
        let whole = Made::usual().params(params).expecting(&results);
        files.push(folder.write(&format!("{at}.safetensors"), &whole.bytes()).into_os_string());
    }
    let check = |backend: &str, atol: &str| {
        let flags = ["--check", "--atol", atol, "--backend", backend].map(Into::into);
        attend(flags.into_iter().chain(files.iter().cloned())).ended(0)
    };
    check("cpu", "0");
    let run = check("gpu", "1e-5");
    assert!(run.out.contains("68 right, 0 off"), "{}", run.out);
}

/// A file that says something about everything, and what each flag makes of it.
const OTHER: &str = r#"{"scale": 0.1, "softcap": 9, "causal": "bottom_right", "shift": -1,
    "window_left": 3, "window_right": 1}"#;
const REPLACED: [(&[&str], &str, &str); 9] = [
    (&["--scale", "0.7"], r#""scale": 0.1"#, r#""scale": 0.7"#),
    (&["--softcap", "0"], r#""softcap": 9"#, r#""softcap": 0"#),
    (&["--causal", "none"], r#""bottom_right""#, r#""none""#),
    (&["--shift", "2"], r#""shift": -1"#, r#""shift": 2"#),
    (&["--window-left", "0"], r#""window_left": 3"#, r#""window_left": 0"#),
    (&["--window-left", "-1"], r#""window_left": 3"#, r#""window_left": -1"#),
    // An alignment by hand replaces the file's shift.
    (&["--causal", "bottom-right"], r#""shift": -1,"#, ""),
    (&["--causal", "top-left"], r#""shift": -1"#, r#""shift": 0"#),
    (
        &["--causal", "none", "--window-right", "0", "--shift", "4"],
        r#""shift": -1"#,
        r#""shift": 4"#,
    ),
];

#[test]
fn a_flag_has_the_last_word() {
    let folder = Folder::new("last-word");
    let out = folder.path("out").display().to_string();
    let results = |params: &str, flags: &[&str]| {
        let file = folder.write("one.safetensors", &Made::usual().params(params).bytes());
        let file = file.display().to_string();
        let basic = ["--backend", "cpu", "--want", WANT, "--out", &out, &file];
        attend(basic.iter().chain(flags)).ended(0);
        Made::read(&folder.path("out/one.safetensors")).tensors
    };
    let plain = results(OTHER, &[]);
    for (flags, from, to) in REPLACED {
        assert!(OTHER.contains(from), "{from}");
        let by_flag = results(OTHER, flags);
        assert_eq!(by_flag, results(&OTHER.replace(from, to), &[]), "{flags:?}");
        assert_ne!(by_flag, plain, "{flags:?}");
    }
}

fn by_library(change: Change) -> Made {
    let made = Made::usual();
    let [q, k, v] = ["q", "k", "v"].map(|name| made[name].stored::<f32>());
    let shape = Shape::self_attention(2, 4, 9, 8).kv_heads(2).kv_len(13).value_dim(6);
    let problem = change(Problem::new(shape)).lse().weights().scores();
    let output = cpu::attention(&problem, Inputs::new(&q, &k, &v)).expect("a result");
    let of = |numbers: Option<Vec<f32>>, shape: &[usize]| Tensor::f32(shape, &numbers.expect("it"));
    Made::new()
        .with("out", Tensor::f32(&[2, 4, 9, 6], &output.o))
        .with("lse", of(output.lse, &[2, 4, 9]))
        .with("weights", of(output.weights, &[2, 4, 9, 13]))
        .with("scores", of(output.scores, &[2, 4, 9, 13]))
}

#[test]
fn results_in_parts() {
    let folder = Folder::new("parts");
    let file = folder.write("one.safetensors", &Made::usual().bytes()).display().to_string();
    let out = folder.path("out").display().to_string();
    for (want, names) in [
        (&[][..], &["out"][..]),
        (&["--want", "lse"], &["lse"]),
        (&["--want", "scores,out"], &["out", "scores"]),
        (&["--want", "lse", "--want", "weights"], &["lse", "weights"]),
    ] {
        for backend in ["cpu", "gpu"] {
            let basic = ["--backend", backend, "--out", &out, &file];
            attend(basic.iter().chain(want)).ended(0);
            let made = Made::read(&folder.path("out/one.safetensors"));
            assert_eq!(made.tensors.keys().collect::<Vec<_>>(), names);
        }
    }
    // Neither flag: computed, told, nothing written.
    let run = attend(["--backend", "cpu", &file]).ended(0);
    assert!(run.out.contains("out      F32   [2, 4, 9, 6]"), "{}", run.out);
    // Checked is what is expected, written what is wanted.
    let whole = Made::usual().expecting(&by_library(|p| p)).without("out").without("scores");
    let file = folder.write("one.safetensors", &whole.bytes()).display().to_string();
    let run = attend(["--check", "--out", &out, "--want", "scores", &file]).ended(0);
    assert!(run.out.contains("2 right, 0 off"), "{}", run.out);
    let made = Made::read(&folder.path("out/one.safetensors"));
    assert_eq!(made.tensors.keys().collect::<Vec<_>>(), ["scores"]);
}

#[test]
fn help_is_complete() {
    let run = attend(["--help"]).ended(0);
    let flags = "check atol out want backend layout scale softcap causal shift window-left \
                 window-right";
    for flag in flags.split_whitespace() {
        assert!(run.out.contains(&format!("--{flag}")), "{flag}");
    }
    for word in ["kv_lens", "cu_seqlens_q", "sinks", "alibi_slopes", "suggested_atol", "Exit code"]
    {
        assert!(run.out.contains(word), "{word}");
    }
    let longest = run.out.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(100), "{longest:?}");
}
