//! What `--out` writes: whole, or not at all; nothing that was there by mistake.

use std::path::Path;

use super::made::Made;
use super::tool::{Folder, attend, program};

const OLD: &[u8] = b"what was there";

fn names<const N: usize>(paths: [&Path; N]) -> [String; N] {
    paths.map(|path| path.display().to_string())
}

#[test]
fn one_bad_file_leaves_the_others() {
    let folder = Folder::new("others");
    let good = Made::usual().bytes();
    let files = ["a.safetensors", "b.safetensors", "c.safetensors", "d.safetensors"];
    let [a, b, c, d] = [&good[..], b"no safetensors at all", &good, &good[..good.len() - 1]];
    let paths = [(0, a), (1, b), (2, c), (3, d)].map(|(at, bytes)| folder.write(files[at], bytes));
    let [a, b, c, d, out] =
        names([&paths[0], &paths[1], &paths[2], &paths[3], &folder.path("out/of/it")]);
    for file in ["b.safetensors", "c.safetensors"] {
        folder.write(&format!("out/of/it/{file}"), OLD);
    }
    for backend in ["cpu", "gpu"] {
        let run = attend(["--backend", backend, "--out", &out, &a, &b, &c, &d]).ended(2);
        let lines: Vec<_> = run.err.lines().collect();
        assert_eq!(lines.len(), 2, "{}", run.err);
        assert!(lines[0].starts_with(&format!("attend: {b}: header: ")), "{}", lines[0]);
        assert!(lines[1].starts_with(&format!("attend: {d}: header: ")), "{}", lines[1]);
        assert!(run.out.contains("2 of 4 files refused"), "{}", run.out);
        // Nothing of a refused file, nothing unfinished, and what was there is as it was.
        let written = folder.names("out/of/it");
        assert_eq!(written, ["a.safetensors", "b.safetensors", "c.safetensors"]);
        assert_eq!(std::fs::read(folder.path("out/of/it/b.safetensors")).expect("it"), OLD);
        let [a, c] = ["a", "c"].map(|name| folder.path(&format!("out/of/it/{name}.safetensors")));
        assert_eq!(Made::read(&a).tensors, Made::read(&c).tensors);
    }
}

#[test]
fn refused_before_anything_is_written() {
    let folder = Folder::new("refused");
    let good = Made::usual().bytes();
    let one = folder.write("one/x.safetensors", &good);
    let two = folder.write("two/x.safetensors", &good);
    let [one, two, out] = names([&one, &two, &folder.path("out")]);
    let run = attend(["--out", &out, &one, &two]).ended(2);
    let said = format!("attend: {out}/x.safetensors: the result of two files\n");
    assert_eq!((run.err, run.out), (said, String::new()));
    assert!(folder.names("out").is_empty());
    // The same file twice is two files of one name; without --out it does no harm.
    attend(["--out", &out, &one, &one]).ended(2);
    attend(["--backend", "cpu", &one, &one, &two]).ended(0);

    let [into] = names([&folder.path("one")]);
    let run = attend(["--out", &into, &two, &one]).ended(2);
    assert!(run.err.contains("the result of two files"), "{}", run.err);
    for (out, input) in [(&into, &one), (&format!("{into}/../one/."), &one)] {
        let run = attend(["--out", out, input]).ended(2);
        assert!(run.err.contains("would replace an input"), "{}", run.err);
        assert_eq!(run.err.lines().count(), 1);
    }
    assert_eq!(std::fs::read(&one).expect("the input"), good);
    // A file where the folder should be.
    let run = attend(["--out", &two, &one]).ended(2);
    assert!(run.err.starts_with(&format!("attend: {two}: ")), "{}", run.err);
    assert_eq!(std::fs::read(&two).expect("the input"), good);
}

#[test]
fn a_result_that_cannot_be_written_is_one_line() {
    let folder = Folder::new("unwritten");
    let good = Made::usual().bytes();
    let paths = ["a.safetensors", "b.safetensors"].map(|name| folder.write(name, &good));
    folder.write("out/a.safetensors/in-the-way", OLD);
    let [a, b, out] = names([&paths[0], &paths[1], &folder.path("out")]);
    let run = attend(["--backend", "cpu", "--out", &out, &a, &b]).ended(2);
    assert_eq!(run.err.lines().count(), 1, "{}", run.err);
    assert!(run.err.starts_with(&format!("attend: {a}: {out}/a.safetensors: ")), "{}", run.err);
    assert_eq!(folder.names("out"), ["a.safetensors", "b.safetensors"]);
}

/// A limit on the size of files ends the program in the middle of writing.
#[cfg(unix)]
#[test]
fn an_end_in_the_middle_leaves_no_half_result() {
    let folder = Folder::new("middle");
    let file = folder.write("a.safetensors", &Made::usual().bytes());
    for old in [None, Some(OLD)] {
        old.map(|old| folder.write("out/a.safetensors", old));
        let status = std::process::Command::new("sh")
            .args(["-c", r#"ulimit -f 1; ulimit -c 0; exec "$0" "$@""#])
            .arg(program())
            .args(["--backend", "cpu", "--want", "weights,out,scores", "--out"])
            .args([&folder.path("out"), &file])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        assert!(!status.expect("a shell").success());
        assert_eq!(std::fs::read(folder.path("out/a.safetensors")).ok().as_deref(), old);
    }
}

#[test]
fn two_wins_over_one() {
    let folder = Folder::new("wins");
    let good = Made::usual();
    let wrong = good.clone().with("out", Made::usual()["q"].clone());
    let off = good.with("lse", super::made::Tensor::f32(&[2, 4, 9], &[9.0; 72]));
    let paths = [("off.safetensors", off), ("bad.safetensors", wrong)]
        .map(|(name, made)| folder.write(name, &made.bytes()));
    let [off, bad] = names([&paths[0], &paths[1]]);
    let run = attend(["--check", "--backend", "cpu", &off]).ended(1);
    assert_eq!(run.err, "");
    for order in [[&off, &bad], [&bad, &off]] {
        let run = attend(["--check", "--backend", "cpu"].iter().chain(&order.map(String::as_str)));
        let run = run.ended(2);
        let said = "out: need shape [2, 4, 9, 6], got [2, 4, 9, 8]";
        assert_eq!(run.err, format!("attend: {bad}: {said}\n"));
        assert!(run.out.contains("0 right, 1 off"), "{}", run.out);
    }
}
