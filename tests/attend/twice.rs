//! A name that a file's JSON gives twice is refused, wherever it stands: which of the two counts would be
//! a guess.

use std::path::Path;

use super::hostile::raw;
use super::made::Made;
use super::tool::{Folder, attend};

/// A good file with a change of its header's text, and the data as it was.
fn changed(made: &Made, from: &str, to: &str) -> Vec<u8> {
    let bytes = made.bytes();
    let length = u64::from_le_bytes(*bytes.first_chunk().expect("a length")) as usize;
    let header = std::str::from_utf8(&bytes[8..8 + length]).expect("text");
    assert!(header.contains(from), "{header}");
    let mut all = raw(&header.replacen(from, to, 1), 0);
    all.extend(&bytes[8 + length..]);
    all
}

#[test]
fn names_given_twice_are_refused() {
    let folder = Folder::new("twice");
    let usual = Made::usual();
    let about = usual.clone().params("{}").meta("suggested_atol", "1e-5");
    let header = |from: &str, to: &str| changed(&usual, from, to);
    let metadata = |from: &str, to: &str| changed(&about, from, to);
    let params = |json: &str| usual.clone().params(json).bytes();
    let tensor = |more: &str| {
        let dtype = r#""q":{"dtype":"F32""#;
        header(dtype, &format!("{dtype},{more}"))
    };
    let entry = {
        let bytes = usual.bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let start = text.find(r#""q":"#).expect("q");
        text[start..start + text[start..].find('}').expect("an end") + 1].to_owned()
    };
    let rows = [
        ("a tensor", header(r#""q":"#, &format!(r#"{entry},"q":"#)), "header: q: given twice"),
        (
            "in other letters",
            header(r#""q":"#, &format!(r#"{},"q":"#, entry.replace(r#""q""#, r#""\u0071""#))),
            "header: q: given twice",
        ),
        ("no tensor of use", header("{", r#"{"x":null,"x":null,"#), "header: x: given twice"),
        (
            "all metadata",
            metadata(r#""__metadata__":"#, r#""__metadata__":{},"__metadata__":"#),
            "header: __metadata__: given twice",
        ),
        (
            "empty metadata",
            header("{", r#"{"__metadata__":null,"__metadata__":null,"#),
            "header: __metadata__: given twice",
        ),
        (
            "params",
            metadata(r#""params":"#, r#""params":"{}","params":"#),
            "header: params: given twice",
        ),
        (
            "a tolerance",
            metadata(r#""suggested_atol":"#, r#""suggested_atol":"1","suggested_atol":"#),
            "header: suggested_atol: given twice",
        ),
        (
            "other metadata",
            metadata(r#""params":"#, r#""by":"a","by":"b","params":"#),
            "header: by: given twice",
        ),
        ("a type", tensor(r#""dtype":"F32""#), "header: dtype: given twice"),
        ("a shape", tensor(r#""shape":[1],"shape":[1]"#), "header: shape: given twice"),
        (
            "offsets",
            tensor(r#""data_offsets":[0,1],"data_offsets":[0,1]"#),
            "header: data_offsets: given twice",
        ),
        ("deep down", tensor(r#""more":[{"a":[{"b":1,"b":1}]}]"#), "header: b: given twice"),
        (
            "a param",
            params(r#"{"scale": 1.0, "softcap": 2.0, "scale": 1.0}"#),
            "params: scale: given twice",
        ),
        (
            "a param that is off",
            params(r#"{"alibi": false, "alibi": false}"#),
            "params: alibi: given twice",
        ),
        ("in a param", params(r#"{"scale": [{"x": 1, "x": 2}]}"#), "params: x: given twice"),
    ];
    for (label, bytes, said) in &rows {
        let file = folder.write("one.safetensors", bytes).display().to_string();
        for backend in ["cpu", "gpu"] {
            let run = attend(["--backend", backend, &file]).ended(2);
            assert!(
                run.err.starts_with(&format!("attend: {file}: {said}")),
                "{label}: {}",
                run.err
            );
            assert_eq!(run.err.lines().count(), 1, "{label}: {}", run.err);
        }
    }
    let atol = usual.meta("suggested_atol", r#"{"out": 1, "out": 2}"#).expecting(&Made::usual());
    let atol = atol.clone().with("lse", super::bad::zeros(safetensors::Dtype::F32, &[2, 4, 9]));
    let file = folder.write("one.safetensors", &atol.bytes()).display().to_string();
    let run = attend(["--check", "--backend", "cpu", &file]).ended(2);
    assert!(run.err.contains("suggested_atol: out: given twice"), "{}", run.err);
}

/// The files that the tool once took, and those it is right about.
#[test]
fn reported_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/reports");
    for (name, said) in [
        ("duplicate_tensor", "header: q: given twice"),
        ("duplicate_param", "params: scale: given twice"),
    ] {
        let file = folder.join(format!("{name}.safetensors")).display().to_string();
        let run = attend(["--backend", "cpu", &file]).ended(2);
        assert!(run.err.starts_with(&format!("attend: {file}: {said}")), "{}", run.err);
    }
    let files = folder.read_dir().expect("a folder").map(|file| file.expect("a file").path());
    let names = files.map(|file| file.display().to_string());
    let answered: Vec<_> = names.filter(|name| !name.contains("duplicate_")).collect();
    for backend in ["cpu", "gpu"] {
        let basic = ["--check", "--backend", backend].map(str::to_owned);
        let run = attend(basic.iter().chain(&answered)).ended(0);
        assert!(run.out.contains("18 right, 0 off") && run.err.is_empty(), "{}", run.out);
    }
}
