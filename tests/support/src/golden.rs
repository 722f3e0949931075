//! The golden cases: inputs and expected results that did not come from this crate's code.

use std::path::{Path, PathBuf};

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use wgpu_attention::half::{bf16, f16};
use wgpu_attention::{Align, Band, Inputs, Output, Problem, Shape};

use crate::expected::Expected;
use crate::tensor::read;

/// One case. The problem asks for LSE.
pub struct Case {
    pub name: String,
    pub problem: Problem,
    /// Numbers that are not finite: binds only the CPU reference.
    pub nonfinite: bool,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    bias: Option<Vec<f32>>,
    mask: Option<Vec<bool>>,
    slopes: Option<Vec<f32>>,
    expected: Expected,
    out_tolerance: f64,
    lse_tolerance: f64,
}

/// Every case of the index.
pub fn load() -> Vec<Case> {
    let folder = folder("cases");
    let index = std::fs::read(folder.join("index.json")).expect("tests/data/cases/index.json");
    let index: Value = serde_json::from_slice(&index).expect("an index in JSON");
    let case = |entry: &Value| {
        let name = text(&entry["name"]);
        let file = std::fs::read(folder.join(text(&entry["file"])));
        let file = file.unwrap_or_else(|error| panic!("{name}: {error}"));
        let file = SafeTensors::deserialize(&file);
        Case::new(entry, &file.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    index["cases"].as_array().expect("a list of cases").iter().map(case).collect()
}

/// In the checkout that this was built from; on another machine, in the folder that this runs in.
pub fn folder(name: &str) -> PathBuf {
    let here = PathBuf::from_iter(["tests", "data", name]);
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&here);
    if built.exists() { built } else { here }
}

impl Case {
    pub fn new(entry: &Value, file: &SafeTensors<'_>) -> Case {
        let mut problem = problem(entry);
        let (mut bias, mut mask) = (None, None);
        if let Ok(tensor) = file.tensor("mask") {
            let shape: Vec<u32> = tensor.shape().iter().map(|&n| n as u32).collect();
            if tensor.dtype() == Dtype::BOOL {
                problem = problem.mask_shape(&shape);
                mask = Some(tensor.data().iter().map(|&may| may != 0).collect());
            } else {
                problem = problem.bias_shape(&shape);
                bias = Some(read(file, "mask"));
            }
        }
        let slopes = file.tensor("alibi_slopes").ok().map(|_| read(file, "alibi_slopes"));
        if slopes.is_some() {
            problem = problem.alibi();
        }
        let tags = entry["tags"].as_array().expect("a list of tags");
        let tolerance = |part: &str| {
            let value = &entry["suggested_atol_by_tensor"][part];
            value.as_f64().expect("a tolerance")
        };
        let out_f32 = file
            .tensor("out_f32")
            .ok()
            .map(|_| read::<f32>(file, "out_f32").into_iter().map(f64::from).collect());
        let expected = Expected {
            out: Some(read(file, "out")),
            out_f32,
            lse: Some(read(file, "lse")),
            value_dim: problem.shape().value_dim as usize,
            any_for_nan: false,
        };
        Case {
            name: text(&entry["name"]).into(),
            problem,
            nonfinite: tags.iter().any(|tag| tag == "nonfinite"),
            q: floats(file, "q"),
            k: floats(file, "k"),
            v: floats(file, "v"),
            bias,
            mask,
            slopes,
            expected,
            out_tolerance: tolerance("out"),
            lse_tolerance: tolerance("lse"),
        }
    }

    pub fn inputs(&self) -> Inputs<'_> {
        let mut inputs = Inputs::new(&self.q, &self.k, &self.v);
        inputs.extras.bias = self.bias.as_deref();
        inputs.extras.mask = self.mask.as_deref();
        inputs.extras.slopes = self.slopes.as_deref();
        inputs
    }

    /// Nothing if the result is right, else what is wrong with it.
    pub fn check(&self, output: &Output) -> Result<(), String> {
        let wide = |x: &[f32]| x.iter().copied().map(f64::from).collect::<Vec<_>>();
        let lse = output.lse.as_deref().ok_or("no LSE")?;
        let [out, lse] = self.distance(&wide(&output.o), &wide(lse))?;
        let (out_most, lse_most) = (self.out_tolerance, self.lse_tolerance);
        if out > out_most || lse > lse_most {
            return Err(format!(
                "{}: out {out:.2e} (allowed {out_most:.2e}), LSE {lse:.2e} (allowed {lse_most:.2e})",
                self.name
            ));
        }
        Ok(())
    }

    /// How far output and LSE are from the expected ones, at most.
    pub fn distance(&self, out: &[f64], lse: &[f64]) -> Result<[f64; 2], String> {
        let Expected { out: all, lse: all_lse, .. } = &self.expected;
        let sizes = [all, all_lse].map(|all| all.as_ref().map(Vec::len));
        if sizes != [Some(out.len()), Some(lse.len())] {
            return Err(format!("{}: {} and {} numbers", self.name, out.len(), lse.len()));
        }
        Ok([self.expected.out(out).by, self.expected.lse(lse).by])
    }
}

/// Numbers that f32 holds, whatever they are stored as.
fn floats(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let tensor = file.tensor(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let halves = || bytemuck::pod_collect_to_vec::<u8, u16>(tensor.data()).into_iter();
    match tensor.dtype() {
        Dtype::F16 => halves().map(|bits| f16::from_bits(bits).to_f32()).collect(),
        Dtype::BF16 => halves().map(|bits| bf16::from_bits(bits).to_f32()).collect(),
        _ => read(file, name),
    }
}

fn problem(entry: &Value) -> Problem {
    let size = |name: &str| {
        let n = entry[name].as_u64().and_then(|n| u32::try_from(n).ok());
        n.unwrap_or_else(|| panic!("no size {name}"))
    };
    let params = &entry["params"];
    let bound = |name: &str| {
        let n = params[name].as_i64().expect("a bound");
        u32::try_from(n).ok() // -1 is open
    };
    let shape = Shape::self_attention(size("B"), size("Hq"), size("Nq"), size("Dk"))
        .kv_heads(size("Hkv"))
        .kv_len(size("Nk"))
        .value_dim(size("Dv"));
    let mut band = Band { left: bound("window_left"), right: bound("window_right") };
    let causal = text(&params["causal"]);
    let align = match causal {
        "none" | "top_left" => Align::TopLeft,
        "bottom_right" => Align::BottomRight,
        other => panic!("causal: {other}"),
    };
    if causal != "none" {
        band.right = Some(0);
    }
    let softcap = params["softcap"].as_f64().expect("a softcap") as f32;
    let problem = Problem::new(shape).band(band).align(align).softcap(softcap).lse();
    match params["scale"].as_f64() {
        Some(scale) => problem.scale(scale as f32),
        None => problem,
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}
