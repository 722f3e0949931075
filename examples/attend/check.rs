//! Results against what the file expects of them.

use safetensors::Dtype;
use serde_json::Value;

use super::attend::{Made, Part};
use super::case::{Case, Order};
use super::file::File;
use super::tensor::Tensor;
use wgpu_attention_support::expected::{Expected, Far, far};

/// What sums in f32 may be off by, for ordinary numbers, where the file says nothing.
const USUAL: f64 = 1e-5;

/// What a file expects, rows in head-major order.
pub struct Check {
    expected: Expected,
    weights: Option<Vec<f64>>,
    scores: Option<Vec<f64>>,
    /// By how much each expected result may be off.
    allowed: Vec<(Part, f64)>,
}

/// How far one result is off.
pub struct Finding {
    pub far: Far,
    pub allowed: f64,
    /// The farthest element in words.
    pub place: String,
}

impl Finding {
    pub fn is_good(&self) -> bool {
        self.far.by <= self.allowed
    }
}

impl Check {
    pub fn new(
        file: &File,
        case: &Case<'_>,
        atol: Option<f64>,
        on_gpu: bool,
    ) -> Result<Check, String> {
        let stated = match atol {
            Some(_) => Value::Null,
            None => file.json("suggested_atol")?,
        };
        let mut allowed = Vec::new();
        let mut read = |part: Part| -> Result<Option<Vec<f64>>, String> {
            let Some(tensor) = file.tensor(part.name()) else { return Ok(None) };
            let want = numbers(&tensor, part, case)?;
            let most = match atol {
                Some(atol) => atol,
                None => allowed_by(tolerance(&stated, part)?, &want, part, case),
            };
            allowed.push((part, most));
            Ok(Some(want))
        };
        let [out, lse] = [read(Part::Out)?, read(Part::Lse)?];
        let [weights, scores] = [read(Part::Weights)?, read(Part::Scores)?];
        let out_f32 = file.tensor("out_f32").map(|tensor| numbers(&tensor, Part::Out, case));
        let [.., value_dim] = case.head_major();
        let out_f32 = out_f32.transpose()?;
        let expected = Expected { out, out_f32, lse, value_dim, any_for_nan: on_gpu };
        match allowed.is_empty() {
            true => Err("out: expected by --check, not in the file".into()),
            false => Ok(Check { expected, weights, scores, allowed }),
        }
    }

    /// The results there is something to check in.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.allowed.iter().map(|allowed| allowed.0)
    }

    /// `None` if nothing is expected of this result.
    pub fn finding(&self, made: &Made, case: &Case<'_>) -> Result<Option<Finding>, String> {
        let allowed = self.allowed.iter().find(|allowed| allowed.0 == made.part);
        let (Some(&(part, allowed)), Some(want)) = (allowed, self.want(made.part)) else {
            return Ok(None);
        };
        let got = numbers(&made.tensor(), part, case)?;
        let far = match part {
            Part::Out => self.expected.out(&got),
            Part::Lse => self.expected.lse(&got),
            Part::Weights | Part::Scores => far(&got, want),
        };
        let at = far.at;
        let place = match (got.get(at), want.get(at)) {
            (Some(got), Some(want)) => format!("{}: {got}, not {want}", place(part, case, at)),
            _ => String::new(),
        };
        Ok(Some(Finding { far, allowed, place }))
    }

    fn want(&self, part: Part) -> Option<&[f64]> {
        let Expected { out, lse, .. } = &self.expected;
        match part {
            Part::Out => out.as_deref(),
            Part::Lse => lse.as_deref(),
            Part::Weights => self.weights.as_deref(),
            Part::Scores => self.scores.as_deref(),
        }
    }
}

/// A result's numbers in head-major order.
fn numbers(tensor: &Tensor<'_>, part: Part, case: &Case<'_>) -> Result<Vec<f64>, String> {
    tensor.expect_shape(&case.shape(part))?;
    let numbers = tensor.floats()?;
    if part != Part::Out || case.order == Order::Bhnd {
        return Ok(numbers);
    }
    let [batch, heads, tokens, dim] = case.head_major();
    let mut ordered = Vec::with_capacity(numbers.len());
    for row in 0..batch * heads * tokens {
        let [b, h, i] = [row / tokens / heads, row / tokens % heads, row % tokens];
        let start = ((b * tokens + i) * heads + h) * dim;
        ordered.extend_from_slice(&numbers[start..start + dim]);
    }
    Ok(ordered)
}

/// Where an element stands.
fn place(part: Part, case: &Case<'_>, at: usize) -> String {
    let [_, heads, tokens, dim] = case.head_major();
    let (row, last) = match part {
        Part::Lse => (at, String::new()),
        Part::Out => (at / dim, format!(", element {}", at % dim)),
        Part::Weights | Part::Scores => {
            let keys = case.problem.shape().kv_len as usize;
            (at / keys, format!(", key {}", at % keys))
        }
    };
    let [b, h, i] = [row / tokens / heads, row / tokens % heads, row % tokens];
    format!("batch {b}, head {h}, query {i}{last}")
}

/// The tolerance that the file states for a result: one for all, or one by name.
fn tolerance(stated: &Value, part: Part) -> Result<Option<f64>, String> {
    let of_part = if stated.is_object() { &stated[part.name()] } else { stated };
    match of_part.as_f64() {
        Some(most) if most >= 0.0 => Ok(Some(most)),
        None if of_part.is_null() => Ok(None),
        _ => Err(format!("suggested_atol: {}: need a number from 0, got {of_part}", part.name())),
    }
}

/// The stated tolerance, else [`USUAL`] and the rounding to f32. Stated or not, a 16-bit result may
/// be off by its rounding too. Both roundings are those of the largest number expected.
fn allowed_by(stated: Option<f64>, want: &[f64], part: Part, case: &Case<'_>) -> f64 {
    let (most, unit) = match (part, case.q.dtype, stated) {
        (Part::Out, Dtype::F16, _) => (stated.unwrap_or(USUAL), 2f64.powi(-11)),
        (Part::Out, Dtype::BF16, _) => (stated.unwrap_or(USUAL), 2f64.powi(-8)),
        (_, _, Some(stated)) => (stated, 0.0),
        (_, _, None) => (USUAL, 2f64.powi(-24)),
    };
    let finite = want.iter().filter(|x| x.is_finite());
    most + unit * finite.fold(0.0, |largest, x| x.abs().max(largest))
}
