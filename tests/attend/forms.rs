//! The same attention in other forms: types, axes, packed sequences, lengths.

use safetensors::Dtype;

use super::made::{Made, Tensor};
use super::tool::{Folder, attend};

const WANT: [&str; 4] = ["out", "lse", "weights", "scores"];
const FLOATS: [Dtype; 3] = [Dtype::F32, Dtype::F16, Dtype::BF16];

/// Results of one file.
fn results(folder: &Folder, made: &Made, backend: &str, flags: &[&str]) -> Made {
    let file = folder.write("one.safetensors", &made.bytes()).display().to_string();
    let out = folder.path("results").display().to_string();
    let want = WANT.join(",");
    let basic = ["--backend", backend, "--want", &want, "--out", &out, &file];
    attend(basic.iter().chain(flags)).ended(0);
    Made::read(&folder.path("results/one.safetensors"))
}

/// The results of the CPU, as many files at once, are right by the GPU too.
fn gpu_agrees(folder: &Folder, files: &[Made], flags: &[&str]) {
    let mut arguments = ["--check", "--backend", "gpu"].map(str::to_owned).to_vec();
    arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
    for (at, file) in files.iter().enumerate() {
        let path = folder.write(&format!("{at}.safetensors"), &file.bytes());
        arguments.push(path.display().to_string());
    }
    let run = attend(arguments).ended(0);
    let right = format!("{} right, 0 off", 4 * files.len());
    assert!(run.out.contains(&right), "{}", run.out);
}

#[test]
fn types_in_and_out() {
    let folder = Folder::new("types");
    let mut files = Vec::new();
    for queries in FLOATS {
        for keys in FLOATS {
            // Odd values: two 16-bit rows would share a word.
            let made = Made::of_types(queries, keys)
                .with("v", Tensor::random(keys, &[2, 2, 13, 5], 4))
                .with("mask", Tensor::random(keys, &[9, 13], 5))
                .with("alibi_slopes", Tensor::random(keys, &[4], 6))
                .with("sinks", Tensor::random(queries, &[4], 7));
            let made_results = results(&folder, &made, "cpu", &[]);
            assert_eq!(made_results["out"].dtype, queries);
            for name in &WANT[1..] {
                assert_eq!(made_results[name].dtype, Dtype::F32, "{name}");
            }
            // Of the same numbers as f32, rounded at the end.
            let mut wide = made.clone();
            wide.tensors.values_mut().for_each(|tensor| *tensor = tensor.to(Dtype::F32));
            let wide = results(&folder, &wide, "cpu", &[]);
            let narrow = wide["out"].to(queries);
            let apart = made_results["out"].numbers().into_iter().zip(narrow.numbers());
            let apart = apart.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(apart <= if queries == Dtype::F32 { 0.0 } else { 0.01 }, "{apart}");
            for name in &WANT[1..] {
                assert_eq!(made_results[name], wide[name], "{name}");
            }
            // A 16-bit output may be off by its rounding, whatever tolerance is stated.
            let whole = made.expecting(&wide);
            files.push(whole.clone().meta("suggested_atol", r#"{"out": 4e-6}"#));
            files.push(whole);
        }
    }
    gpu_agrees(&folder, &files, &[]);
}

#[test]
fn token_major_equals_head_major() {
    let folder = Folder::new("token-major");
    let swapped = |made: &Made| {
        let mut swapped = made.clone();
        for name in ["q", "k", "v", "out"] {
            if let Some(tensor) = swapped.tensors.get_mut(name) {
                *tensor = tensor.swapped();
            }
        }
        swapped
    };
    let mut files = Vec::new();
    for (queries, keys) in [(Dtype::F32, Dtype::F32), (Dtype::F16, Dtype::BF16)] {
        let head_major = Made::of_types(queries, keys).params(r#"{"causal": "bottom_right"}"#);
        let token_major = swapped(&head_major);
        for backend in ["cpu", "gpu"] {
            let expected = results(&folder, &head_major, backend, &["--layout", "bhnd"]);
            let got = results(&folder, &token_major, backend, &["--layout", "bnhd"]);
            assert_eq!(got.tensors, swapped(&expected).tensors, "{queries:?} {backend}");
            files.push(token_major.clone().expecting(&got));
        }
    }
    gpu_agrees(&folder, &files, &["--layout", "bnhd"]);
    // One that is off is told by its place, not by its place in the file.
    let mut out = files[0]["out"].stored::<f32>();
    let [batch, token, head, element] = [1, 7, 3, 2];
    out[((batch * 9 + token) * 4 + head) * 6 + element] += 1.0;
    let wrong = files[0].clone().with("out", Tensor::f32(&[2, 9, 4, 6], &out));
    let wrong = folder.write("wrong.safetensors", &wrong.bytes()).display().to_string();
    let run = attend(["--check", "--layout", "bnhd", &wrong]).ended(1);
    let place = "OFF at batch 1, head 3, query 7, element 2";
    assert!(run.out.contains(place), "{}", run.out);
}

#[test]
fn packed_equals_separate() {
    let folder = Folder::new("packed");
    // Sequences of no, one and many tokens, and room behind the last.
    let (q_bounds, kv_bounds) = ([0u32, 3, 3, 4, 9], [0u32, 5, 7, 7, 12]);
    let whole = |types: [Dtype; 2]| {
        Made::new()
            .with("q", Tensor::random(types[0], &[1, 4, 11, 8], 11))
            .with("k", Tensor::random(types[1], &[1, 2, 12, 8], 12))
            .with("v", Tensor::random(types[1], &[1, 2, 12, 6], 13))
            .with("alibi_slopes", Tensor::random(Dtype::F32, &[4], 14))
            .with("sinks", Tensor::random(Dtype::F32, &[4], 15))
            .params(r#"{"causal": "bottom_right", "window_left": 4, "alibi": true, "sinks": true}"#)
    };
    let mut files = Vec::new();
    for types in [[Dtype::F32; 2], [Dtype::F32, Dtype::F16]] {
        let whole = whole(types);
        let packed = whole
            .clone()
            .with("cu_seqlens_q", Tensor::new(Dtype::U32, &[5], &q_bounds))
            .with("cu_seqlens_kv", Tensor::new(Dtype::I64, &[5], &kv_bounds.map(i64::from)));
        let got = results(&folder, &packed, "cpu", &[]);
        for s in 0..4 {
            let range = |bounds: [u32; 5]| bounds[s] as usize..bounds[s + 1] as usize;
            let (queries, keys) = (range(q_bounds), range(kv_bounds));
            let mut own = whole.clone().with("q", whole["q"].tokens(queries.clone()));
            for name in ["k", "v"] {
                own = own.with(name, whole[name].tokens(keys.clone()));
            }
            let own = results(&folder, &own, "cpu", &[]);
            assert_eq!(own["out"], got["out"].tokens(queries.clone()), "sequence {s}");
            assert_eq!(own["lse"], got["lse"].tokens(queries), "sequence {s}");
        }
        let rest = got["out"].tokens(9..11).numbers();
        assert!(rest.iter().all(|&x| x == 0.0));
        assert!(got["lse"].tokens(9..11).numbers().iter().all(|&x| x == f64::NEG_INFINITY));
        files.push(packed.expecting(&got));
    }
    gpu_agrees(&folder, &files, &[]);
}

#[test]
fn lengths_equal_shorter_files() {
    let folder = Folder::new("lengths");
    let whole = Made::usual().params(r#"{"causal": "bottom_right"}"#);
    let (q_lens, kv_lens) = ([9i32, 4], [6i32, 13]);
    let long = q_lens.map(i64::from);
    let unsigned = kv_lens.map(|n| n as u32);
    let wide = kv_lens.map(|n| n as u64);
    let forms = [
        ("both", Tensor::new(Dtype::I32, &[2], &q_lens), Tensor::new(Dtype::I32, &[2], &kv_lens)),
        ("long", Tensor::new(Dtype::I64, &[2], &long), Tensor::new(Dtype::U32, &[2], &unsigned)),
        ("wide", Tensor::new(Dtype::I64, &[2], &long), Tensor::new(Dtype::U64, &[2], &wide)),
    ];
    let mut files = Vec::new();
    for (form, q, kv) in forms {
        let made = whole.clone().with("q_lens", q).with("kv_lens", kv);
        let got = results(&folder, &made, "cpu", &[]);
        for b in 0..2 {
            let [queries, keys] = [q_lens[b] as usize, kv_lens[b] as usize];
            let own = whole
                .clone()
                .with("q", whole["q"].batch(b).tokens(0..queries))
                .with("k", whole["k"].batch(b).tokens(0..keys))
                .with("v", whole["v"].batch(b).tokens(0..keys));
            let own = results(&folder, &own, "cpu", &[]);
            let part = |name: &str| got[name].batch(b).tokens(0..queries);
            assert_eq!((&own["out"], &own["lse"]), (&part("out"), &part("lse")), "{form} {b}");
            let past = got["out"].batch(b).tokens(queries..9).numbers();
            assert!(past.iter().all(|&x| x == 0.0), "{form} {b}");
        }
        files.push(made.expecting(&got));
    }
    gpu_agrees(&folder, &files, &[]);
}

#[test]
fn empty_files_are_computed() {
    let folder = Folder::new("empty");
    let empty = |shape: &[usize]| Tensor::f32(shape, &[]);
    let no_queries = Made::usual().with("q", empty(&[2, 4, 0, 8]));
    let no_keys = Made::usual().with("k", empty(&[2, 2, 0, 8])).with("v", empty(&[2, 2, 0, 6]));
    let no_batch = Made::new()
        .with("q", empty(&[0, 4, 9, 8]))
        .with("k", empty(&[0, 2, 13, 8]))
        .with("v", empty(&[0, 2, 13, 6]))
        .with("mask", empty(&[0, 1, 1, 13]))
        .with("kv_lens", Tensor::new::<i32>(Dtype::I32, &[0], &[]));
    let none = Tensor::new(Dtype::I32, &[1], &[0i32]);
    let one = |name: &str| Made::usual()[name].batch(0);
    let no_sequences = Made::new()
        .with("q", one("q"))
        .with("k", one("k"))
        .with("v", one("v"))
        .with("cu_seqlens_q", none.clone())
        .with("cu_seqlens_kv", none);
    let mut files = Vec::new();
    for made in [no_queries, no_keys, no_batch, no_sequences] {
        let [cpu, gpu] = ["cpu", "gpu"].map(|backend| results(&folder, &made, backend, &[]));
        assert_eq!(cpu.tensors, gpu.tensors);
        assert!(cpu["out"].numbers().iter().all(|&x| x == 0.0));
        files.push(made.expecting(&cpu));
    }
    gpu_agrees(&folder, &files, &[]);
}
