//! Bad input: exit code 2 and one line with file, tensor and fault.

use safetensors::Dtype;

use super::hostile::hostile;
use super::made::{Made, Tensor};
use super::tool::{Folder, attend};

/// A file, and what the line about it says.
pub type Row = (Vec<u8>, &'static str);

pub fn zeros(dtype: Dtype, shape: &[usize]) -> Tensor {
    let data = vec![0; shape.iter().product::<usize>() * dtype.bitsize() / 8];
    Tensor { dtype, shape: shape.into(), data }
}

fn ints(numbers: &[i64]) -> Tensor {
    Tensor::new(Dtype::I64, &[numbers.len()], numbers)
}

/// Tensors that do not fit each other.
fn tensors() -> Vec<Row> {
    let usual = Made::usual;
    let with = |name: &str, tensor: Tensor| usual().with(name, tensor).bytes();
    let f32s = |shape: &[usize]| zeros(Dtype::F32, shape);
    let packed = |q: Tensor, kv: Tensor| {
        let one = |name: &str| usual()[name].batch(0);
        let made = Made::new().with("q", one("q")).with("k", one("k")).with("v", one("v"));
        made.with("cu_seqlens_q", q).with("cu_seqlens_kv", kv).bytes()
    };
    vec![
        (usual().without("q").bytes(), "q: needed, not in the file"),
        (usual().without("k").bytes(), "k: needed, not in the file"),
        (usual().without("v").bytes(), "v: needed, not in the file"),
        (with("q", zeros(Dtype::F64, &[2, 4, 9, 8])), "q: need type F32, F16 or BF16, got F64"),
        (with("q", zeros(Dtype::I32, &[2, 4, 9, 8])), "q: need type F32, F16 or BF16, got I32"),
        (with("k", zeros(Dtype::F16, &[2, 2, 13, 8])), "v: need type F16 as of k, got F32"),
        (
            usual()
                .with("k", zeros(Dtype::I8, &[2, 2, 13, 8]))
                .with("v", zeros(Dtype::I8, &[2, 2, 13, 6]))
                .bytes(),
            "k: need type F32, F16 or BF16, got I8",
        ),
        (with("q", f32s(&[4, 9, 8])), "q: need 4 axes"),
        (with("v", f32s(&[1, 2, 2, 13, 6])), "v: need 4 axes"),
        (with("k", f32s(&[3, 2, 13, 8])), "k: batch: need 2 as in q, got 3"),
        (with("k", f32s(&[2, 2, 13, 7])), "k: dim: need 8 as in q, got 7"),
        (with("v", f32s(&[1, 2, 13, 6])), "v: batch: need 2 as in q, got 1"),
        (with("v", f32s(&[2, 4, 13, 6])), "v: heads: need 2 as in k, got 4"),
        (with("v", f32s(&[2, 2, 12, 6])), "v: tokens: need 13 as in k, got 12"),
        (with("v", f32s(&[2, 2, 13, 0])), "value_dim: need at least 1"),
        (with("q", f32s(&[2, 0, 9, 8])), "q_heads: need at least 1"),
        (with("q", f32s(&[2, 3, 9, 8])), "q_heads: need a multiple of kv_heads = 2, got 3"),
        (with("mask", zeros(Dtype::BOOL, &[9, 12])), "mask shape: need one that broadcasts"),
        (with("mask", f32s(&[2, 1, 13])), "mask shape: need one that broadcasts"),
        (with("mask", f32s(&[1, 1, 1, 1, 1])), "mask shape: need one that broadcasts"),
        (with("mask", f32s(&[0])), "mask shape: need one that broadcasts"),
        (with("mask", zeros(Dtype::I32, &[13])), "mask: need type BOOL, F32, F16 or BF16, got I32"),
        (with("alibi_slopes", f32s(&[2])), "alibi_slopes: need shape [4], got [2]"),
        (with("alibi_slopes", f32s(&[4, 1])), "alibi_slopes: need shape [4], got [4, 1]"),
        (with("alibi_slopes", ints(&[1; 4])), "alibi_slopes: need type F32, F16 or BF16, got I64"),
        (
            with("alibi_slopes", Tensor::f32(&[4], &[1.0, f32::NAN, 1.0, 1.0])),
            "alibi_slopes: need finite numbers, got NaN",
        ),
        (with("sinks", f32s(&[5])), "sinks: need shape [4], got [5]"),
        (
            with("sinks", Tensor::f32(&[4], &[f32::INFINITY; 4])),
            "sinks: need numbers below infinity, got inf",
        ),
        (
            with("kv_lens", ints(&[13, 14])),
            "kv_lens: need at most the capacity in the shape, got 14",
        ),
        (with("kv_lens", ints(&[13])), "kv_lens: need shape [2], got [1]"),
        (with("kv_lens", ints(&[-1, 13])), "kv_lens[0]: need 0 to 4294967295, got -1"),
        (
            with("q_lens", Tensor::new(Dtype::I32, &[2], &[9, i32::MIN])),
            "q_lens[1]: need 0 to 4294967295, got -2147483648",
        ),
        (with("q_lens", ints(&[1, 1 << 32])), "q_lens[1]: need 0 to 4294967295, got 4294967296"),
        (with("q_lens", ints(&[10, 0])), "q_lens: need at most the capacity in the shape, got 10"),
        (with("q_lens", f32s(&[2])), "q_lens: need type I32, I64, U32 or U64, got F32"),
        (packed(ints(&[0, 5, 4]), ints(&[0, 5, 9])), "cu_seqlens_q: need numbers that never fall"),
        (packed(ints(&[0, 5, 9]), ints(&[0, 5, 14])), "cu_seqlens_kv: need at most the capacity"),
        (packed(ints(&[1, 5, 9]), ints(&[0, 5, 9])), "cu_seqlens_q: need 0 at first, got 1"),
        (packed(ints(&[0, -5, 9]), ints(&[0, 5, 9])), "cu_seqlens_q[1]: need 0 to"),
        (packed(ints(&[]), ints(&[])), "cu_seqlens_q: need shape [sequences + 1], got [0]"),
        (packed(ints(&[0, 9]), ints(&[0, 5, 9])), "cu_seqlens_kv: need shape [2], got [3]"),
        (packed(f32s(&[2]), ints(&[0, 9])), "cu_seqlens_q: need type I32, I64, U32 or U64"),
        (
            usual().with("cu_seqlens_q", ints(&[0, 9])).bytes(),
            "cu_seqlens_kv: needed, not in the file",
        ),
        (
            usual()
                .with("cu_seqlens_q", ints(&[0, 9]))
                .with("cu_seqlens_kv", ints(&[0, 9]))
                .bytes(),
            "batch: need 1, as packed sequences lie one after another, got 2",
        ),
    ]
}

/// Metadata.
fn metadata() -> Vec<Row> {
    let params = |json: &str| Made::usual().params(json).bytes();
    let mut not_a_text = Made::usual().meta("params", "7").bytes();
    let at = not_a_text.windows(5).position(|five| five == br#"s":"7"#).expect("it") + 3;
    not_a_text[at..at + 3].copy_from_slice(b" 7 ");
    vec![
        (params("{"), "params: EOF"),
        (params("7"), "params: need a JSON object"),
        (params(r#""top_left""#), "params: need a JSON object"),
        (params(r#"{"scale": NaN}"#), "params: expected value"),
        (params(r#"{"scale": 1e999}"#), "params: number out of range"),
        (params(r#"{"scale": 1e300}"#), "scale: need a finite number, got inf"),
        (params(r#"{"scale": "nan"}"#), r#"params: scale: need a number, got "nan""#),
        (params(r#"{"scale": [1]}"#), "params: scale: need a number, got [1]"),
        (params(r#"{"softcap": -1}"#), "softcap: need a finite number, positive or 0 for none"),
        (params(r#"{"softcap": true}"#), "params: softcap: need a number, got true"),
        (params(r#"{"causal": true}"#), "params: causal: need none, top_left or bottom_right"),
        (params(r#"{"causal": "left"}"#), "params: causal: need none, top_left or bottom_right"),
        (params(r#"{"shift": 1.5}"#), "params: shift: need a whole number"),
        (params(r#"{"shift": 2147483648}"#), "params: shift: need a whole number"),
        (params(r#"{"window_left": -2}"#), "params: window_left: need a whole number from -1"),
        (params(r#"{"window_right": "all"}"#), "params: window_right: need a whole number from -1"),
        (params(r#"{"window_right": 4294967296}"#), "params: window_right: need a whole number"),
        (params(r#"{"alibi": 1}"#), "params: alibi: need true or false, got 1"),
        (params(r#"{"alibi": true}"#), "alibi_slopes: needed, not in the file"),
        (params(r#"{"sinks": true}"#), "sinks: needed, not in the file"),
        (params(r#"{"dropout": 0.1}"#), "params: dropout: not an option of this tool"),
        (not_a_text, "params: need JSON as a text"),
    ]
}

/// What only `--check` reads.
fn expected() -> Vec<Row> {
    let with = |name: &str, tensor: Tensor| Made::usual().with(name, tensor).bytes();
    let f32s = |shape: &[usize]| zeros(Dtype::F32, shape);
    let atol = |json: &str| {
        Made::usual().with("lse", f32s(&[2, 4, 9])).meta("suggested_atol", json).bytes()
    };
    vec![
        (Made::usual().bytes(), "out: expected by --check, not in the file"),
        (with("out", f32s(&[2, 9, 4, 6])), "out: need shape [2, 4, 9, 6], got [2, 9, 4, 6]"),
        (with("out", zeros(Dtype::I64, &[2, 4, 9, 6])), "out: need type F64, F32, F16 or BF16"),
        (with("lse", f32s(&[2, 4, 9, 1])), "lse: need shape [2, 4, 9], got [2, 4, 9, 1]"),
        (with("weights", f32s(&[2, 4, 9, 9])), "weights: need shape [2, 4, 9, 13]"),
        (
            Made::usual().with("out", f32s(&[2, 4, 9, 6])).with("out_f32", f32s(&[1])).bytes(),
            "out_f32: need shape [2, 4, 9, 6], got [1]",
        ),
        (atol("{"), "suggested_atol: EOF"),
        (atol(r#"{"lse": -1}"#), "suggested_atol: lse: need a number from 0, got -1"),
        (atol(r#"{"lse": "wide"}"#), "suggested_atol: lse: need a number from 0"),
        (atol("[1]"), "suggested_atol: lse: need a number from 0"),
    ]
}

#[test]
fn each_is_one_line() {
    let folder = Folder::new("bad");
    let out = folder.path("out").display().to_string();
    let check = |number: usize, (bytes, said): &Row, flags: &[&str]| {
        let file = folder.write(&format!("{number}.safetensors"), bytes).display().to_string();
        let basic = ["--backend", "cpu", "--out", &out, &file];
        let run = attend(basic.iter().chain(flags)).ended(2);
        let line = format!("attend: {file}: {said}");
        assert!(run.err.starts_with(&line), "need {line}, got {}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
        file
    };
    let rows = [hostile(), tensors(), metadata()].concat();
    let files = rows.iter().enumerate().map(|(number, row)| check(number, row, &[]));
    let mut files: Vec<String> = files.collect();
    for (number, row) in expected().iter().enumerate() {
        check(rows.len() + number, row, &["--check"]);
    }
    assert!(folder.names("out").is_empty());

    // All of them on one device, and one that is good.
    let good = folder.write("good.safetensors", &Made::usual().bytes());
    files.insert(files.len() / 2, good.display().to_string());
    for backend in ["cpu", "gpu"] {
        let basic = ["--backend", backend, "--out", &out].map(str::to_owned);
        let run = attend(basic.iter().chain(&files)).ended(2);
        assert_eq!(run.err.lines().count(), files.len() - 1, "{}", run.err);
        for ((_, said), line) in rows.iter().zip(run.err.lines()) {
            assert!(line.contains(said), "need {said}, got {line}");
        }
        assert_eq!(folder.names("out"), ["good.safetensors"]);
    }
}

/// Rows of no numbers cost a file nothing, however many there are.
#[test]
fn rows_of_nothing_are_refused_at_once() {
    let folder = Folder::new("nothing");
    let nothing = zeros(Dtype::F32, &[1 << 20, 1 << 15, 1 << 20, 0]);
    let made = ["q", "k", "v", "out"]
        .iter()
        .fold(Made::new(), |made, name| made.with(name, nothing.clone()));
    let file = folder.write("one.safetensors", &made.bytes()).display().to_string();
    for layout in ["bhnd", "bnhd"] {
        let run = attend(["--check", "--backend", "cpu", "--layout", layout, &file]).ended(2);
        assert_eq!(run.err, format!("attend: {file}: head_dim: need at least 1, got 0\n"));
    }
}

#[test]
fn what_is_no_file_is_one_line() {
    let folder = Folder::new("no-file");
    let [here, none] = [".", "none.safetensors"].map(|name| folder.path(name));
    let out = folder.path("out").display().to_string();
    let mut rows = vec![(here, "a directory"), (none, "No such file")];
    if cfg!(unix) {
        rows.push(("/dev/zero".into(), "not a regular file"));
    }
    for (path, said) in rows {
        let path = path.display().to_string();
        for flags in [&[][..], &["--check"], &["--out", &out]] {
            let run = attend(["--backend", "cpu", &path].iter().chain(flags)).ended(2);
            assert_eq!(run.err.lines().count(), 1, "{}", run.err);
            let line = format!("attend: {path}: {said}");
            assert!(run.err.starts_with(&line) || !cfg!(unix), "need {line}, got {}", run.err);
        }
    }
}

#[test]
fn flags_that_say_nothing() {
    let folder = Folder::new("bad-flags");
    let file = folder.write("one.safetensors", &Made::usual().bytes()).display().to_string();
    for (flags, said) in [
        (&["-"][..], "need a path, not a stream"),
        (&["--out", "-"], "need a path, not a stream"),
        (&["--want", "dq"], "no gradients yet"),
        (&["--want", "out,dv"], "no gradients yet"),
        (&["--want", "p"], "need out, lse, weights or scores"),
        (&["--scale", "wide"], "--scale"),
        (&["--shift", "1.5"], "--shift"),
        (&["--shift", "4294967296"], "--shift"),
        (&["--window-left", "-2"], "need a whole number from -1"),
        (&["--window-right", "x"], "need a whole number from -1"),
        (&["--causal", "left"], "--causal"),
        (&["--layout", "bhdn"], "--layout"),
        (&["--backend", "tpu"], "--backend"),
        (&["--check", "--atol", "-1"], "need a number from 0"),
        (&["--check", "--atol", "NaN"], "need a number from 0"),
        (&["--atol", "1"], "--check"),
        (&["--scale", "NaN", "--backend", "cpu"], "scale: need a finite number, got NaN"),
        (&["--softcap", "-1", "--backend", "cpu"], "softcap: need a finite number, positive"),
    ] {
        let run = attend([&file[..]].iter().chain(flags)).ended(2);
        assert!(run.err.contains(said), "{}", run.err);
    }
    attend::<&str>([]).ended(2);
}
