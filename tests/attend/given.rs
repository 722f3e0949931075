//! The cases that did not come from this crate, and how a value that is off is told.

use std::path::{Path, PathBuf};

use safetensors::Dtype;

use super::made::{Made, Tensor};
use super::tool::{Folder, attend};

/// Files of the index, and which of them bind only the CPU reference.
fn given() -> Vec<(PathBuf, bool)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    let index = std::fs::read(folder.join("index.json")).expect("an index");
    let index: serde_json::Value = serde_json::from_slice(&index).expect("an index in JSON");
    let case = |entry: &serde_json::Value| {
        let file = entry["file"].as_str().expect("a file");
        let tags = entry["tags"].as_array().expect("tags");
        (folder.join(file), tags.iter().any(|tag| tag == "nonfinite"))
    };
    index["cases"].as_array().expect("a list").iter().map(case).collect()
}

#[test]
fn every_case_is_right_on_the_cpu() {
    let files = given().into_iter().map(|case| case.0.into_os_string());
    let run = attend(["--check", "--backend", "cpu"].map(Into::into).into_iter().chain(files));
    let run = run.ended(0);
    assert_eq!(run.err, "");
    assert_eq!(run.out.lines().count(), 1 + 46 * 2 + 1, "{}", run.out);
    assert!(run.out.contains("92 right, 0 off by the CPU reference; 0 of 46 files refused"));
}

#[test]
fn every_third_case_is_right_on_the_gpu() {
    let (binding, rest): (Vec<_>, Vec<_>) = given().into_iter().partition(|case| !case.1);
    assert_eq!((binding.len(), rest.len()), (43, 3));
    // Each is a kernel of its own to compile.
    let binding: Vec<_> = binding.into_iter().step_by(3).collect();
    let check = ["--check", "--backend", "gpu"].map(PathBuf::from);
    let run = |cases: Vec<(PathBuf, bool)>| {
        attend(check.iter().cloned().chain(cases.into_iter().map(|case| case.0))).ended(0)
    };
    let said = run(binding).out;
    assert!(said.contains("30 right, 0 off") && said.contains("0 of 15 files refused"), "{said}");
    // Rows that see a number that is not finite may be anything there; all others are checked.
    assert!(run(rest).out.contains("6 right, 0 off"));
}

#[test]
fn a_value_that_is_off_is_told_with_its_place() {
    let folder = Folder::new("off");
    let file = folder.write("one.safetensors", &Made::usual().bytes());
    let out = folder.path("out");
    let results = ["--out", out.to_str().expect("a name"), "--want", "out,lse,weights,scores"];
    let file = file.to_str().expect("a name");
    attend(["--backend", "cpu", file].iter().chain(&results)).ended(0);
    let right = Made::read(&out.join("one.safetensors"));

    for (name, width) in [("out", 6), ("lse", 1), ("weights", 13), ("scores", 13)] {
        let mut numbers = right[name].stored::<f32>();
        let row = (4 + 2) * 9 + 3;
        numbers[row * width + width - 1] += 0.25;
        let wrong = Tensor::f32(&right[name].shape, &numbers);
        let whole = Made::usual().expecting(&right).with(name, wrong);
        let file = folder.write("wrong.safetensors", &whole.bytes());
        let file = file.to_str().expect("a name");
        for backend in ["cpu", "gpu"] {
            let run = attend(["--check", "--backend", backend, file]).ended(1);
            let off: Vec<_> = run.out.lines().filter(|line| line.contains("OFF")).collect();
            let [off] = off[..] else { panic!("{}", run.out) };
            assert!(off.contains(name) && off.contains("batch 1, head 2, query 3"), "{off}");
            assert!(run.out.contains("3 right, 1 off"), "{}", run.out);
            assert_eq!(run.err, "");
        }
        attend(["--check", "--atol", "0.3", "--backend", "cpu", file]).ended(0);
        let stated = whole.meta("suggested_atol", &format!("{{\"{name}\": 0.3}}"));
        folder.write("wrong.safetensors", &stated.bytes());
        attend(["--check", "--backend", "cpu", file]).ended(0);
        attend(["--check", "--atol", "1e-5", "--backend", "cpu", file]).ended(1);
    }
}

#[test]
fn numbers_that_are_not_finite_are_compared_by_the_conventions() {
    let folder = Folder::new("nan");
    // Query 1 sees only itself, query 0 all: k of token 0 is NaN.
    let zeros = |shape: &[usize]| Tensor::f32(shape, &vec![0.0; shape.iter().product()]);
    let mut k = vec![0.0; 4];
    k[0] = f32::NAN;
    let made = Made::new()
        .with("q", zeros(&[1, 1, 2, 2]))
        .with("k", Tensor::f32(&[1, 1, 2, 2], &k))
        .with("v", Tensor::f32(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]))
        .with("mask", Tensor::new(Dtype::BOOL, &[2, 2], &[1u8, 1, 0, 1]))
        .with("nan_may", Tensor::new(Dtype::BOOL, &[1, 1, 2], &[0u8, 1]))
        .with("lse", Tensor::f32(&[1, 1, 2], &[7.0, 0.0]));
    let nan = f32::NAN;
    let out = |numbers: [f32; 4]| made.clone().with("out", Tensor::f32(&[1, 1, 2, 2], &numbers));
    let (right, leaked) = (out([nan, nan, 3.0, 4.0]), out([nan, nan, nan, nan]));
    let (finite, one) = (out([1.0, 2.0, 3.0, 4.0]), out([nan, 1.0, 3.0, 4.0]));
    // Either answer of f64 and f32 is right, but not a bit of both.
    let either = out([nan, nan, 9.0, 9.0]).with("out_f32", right["out"].clone());
    let mixed = out([nan, nan, 3.0, 9.0])
        .with("out_f32", Tensor::f32(&[1, 1, 2, 2], &[nan, nan, 9.0, 4.0]));
    // A row without keys is 0, whatever the tolerance.
    let keyless =
        out([nan, nan, 3.0, 4.0]).with("lse", Tensor::f32(&[1, 1, 2], &[7.0, f32::NEG_INFINITY]));
    for (made, cpu, gpu) in [
        (right, 0, Some(0)),
        (leaked, 1, Some(0)),
        (finite, 1, None),
        (one, 1, Some(0)),
        (either, 0, Some(0)),
        (mixed, 1, Some(1)),
        (keyless, 1, Some(1)),
    ] {
        let file = folder.write("nan.safetensors", &made.bytes());
        for (backend, code) in [("cpu", Some(cpu)), ("gpu", gpu)] {
            let Some(code) = code else { continue };
            let file = file.to_str().expect("a name");
            attend(["--check", "--atol", "1e-6", "--backend", backend, file]).ended(code);
        }
    }
}
