//! Inputs from public reports on other kernels, each with its right answer, in the form of a case whose
//! sizes and tolerances are in the file itself.

use std::path::PathBuf;

use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use crate::golden::{Case, folder};

pub struct Report {
    pub case: Case,
    /// What Q and O, and K and V, are stored as.
    pub types: [Dtype; 2],
}

/// Every report that has an answer: all but those on files that must be refused.
pub fn load() -> Vec<Report> {
    let files = std::fs::read_dir(folder("reports")).expect("tests/data/reports");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort_unstable();
    let report = |path: &PathBuf| {
        let name = path.file_stem().expect("a name").display().to_string();
        let bytes = std::fs::read(path).expect("a report");
        (!name.starts_with("duplicate_")).then(|| Report::new(&name, &bytes))
    };
    paths.iter().filter_map(report).collect()
}

impl Report {
    fn new(name: &str, bytes: &[u8]) -> Report {
        let file = SafeTensors::deserialize(bytes).expect(name);
        let (_, header) = SafeTensors::read_metadata(bytes).expect(name);
        let about = header.metadata().as_ref().expect(name);
        let json = |what: &str| -> Value { serde_json::from_str(&about[what]).expect(name) };
        let shape = |tensor: &str| file.tensor(tensor).expect(name).shape().to_vec();
        let (q, k, v) = (shape("q"), shape("k"), shape("v"));
        let mut params = json!({
            "scale": null, "causal": "none", "window_left": -1, "window_right": -1, "softcap": 0.0,
        });
        for (name, value) in json("params").as_object().expect("params") {
            params[name] = value.clone();
        }
        let entry = json!({
            "name": name, "tags": [], "params": params,
            "B": q[0], "Hq": q[1], "Nq": q[2], "Dk": q[3], "Hkv": k[1], "Nk": k[2], "Dv": v[3],
            "suggested_atol_by_tensor": json("suggested_atol"),
        });
        let types = ["q", "k"].map(|tensor| file.tensor(tensor).expect(name).dtype());
        Report { case: Case::new(&entry, &file), types }
    }
}
