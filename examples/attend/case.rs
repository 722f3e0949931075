//! A file's problem and its operands.

use clap::ValueEnum;
use safetensors::Dtype;
use wgpu_attention::{Error, Layout, Operand, Problem, Shape};

use super::file::File;
use super::params::{Flags, Params};
use super::tensor::Tensor;

/// Rows wider than any model's: with no keys, they would cost a file nothing and the tool much.
const WIDEST: u32 = 1 << 16;

/// The axes of q, k, v and out in the file.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Order {
    /// [batch, head, token, dim]
    Bhnd,
    /// [batch, token, head, dim]
    Bnhd,
}

pub struct Case<'a> {
    pub order: Order,
    pub problem: Problem,
    pub q: Tensor<'a>,
    pub k: Tensor<'a>,
    pub v: Tensor<'a>,
    pub optional: Optional,
}

/// The operands that a problem may have besides.
#[derive(Default)]
pub struct Optional {
    pub bias: Option<Vec<f32>>,
    pub mask: Option<Vec<bool>>,
    pub q_lens: Option<Vec<u32>>,
    pub kv_lens: Option<Vec<u32>>,
    pub cu_seqlens_q: Option<Vec<u32>>,
    pub cu_seqlens_kv: Option<Vec<u32>>,
    pub slopes: Option<Vec<f32>>,
    pub sinks: Option<Vec<f32>>,
}

impl<'a> Case<'a> {
    pub fn new(file: &'a File, order: Order, flags: Flags) -> Result<Case<'a>, String> {
        let params = Params::from_json(file.json("params")?)?.with(flags);
        params.announced.iter().try_for_each(|name| file.need(name).map(drop))?;
        let [q, k, v] = [file.need("q")?, file.need("k")?, file.need("v")?];
        let problem = params.on(problem(&q, &k, &v, order)?);
        let mut case = Case { order, problem, q, k, v, optional: Optional::default() };
        case.take_mask(file)?;
        case.take_lengths(file)?;
        case.take_packed(file)?;
        case.take_heads(file)?;
        case.problem.validate().map_err(|error| told(&error))?;
        Ok(case)
    }

    /// A mask of booleans, or one that is added.
    fn take_mask(&mut self, file: &File) -> Result<(), String> {
        let Some(mask) = file.tensor("mask") else { return Ok(()) };
        let shape: Result<Vec<u32>, _> = mask.shape.iter().map(|&n| n.try_into()).collect();
        let shape =
            shape.map_err(|_| format!("mask: shape {:?} does not broadcast", mask.shape))?;
        if mask.dtype == Dtype::BOOL {
            self.optional.mask = Some(mask.bools()?);
            self.change(|problem| problem.mask_shape(&shape));
        } else {
            let refused = |_| mask.other_type("BOOL, F32, F16 or BF16");
            self.optional.bias = Some(mask.narrow().map_err(refused)?);
            self.change(|problem| problem.bias_shape(&shape));
        }
        Ok(())
    }

    fn take_lengths(&mut self, file: &File) -> Result<(), String> {
        let batch = [self.problem.shape().batch as usize];
        let counts = |lens: Tensor<'_>| lens.expect_shape(&batch).and_then(|()| lens.counts());
        if let Some(lens) = file.tensor("q_lens") {
            self.optional.q_lens = Some(counts(lens)?);
            self.change(Problem::q_lens);
        }
        if let Some(lens) = file.tensor("kv_lens") {
            self.optional.kv_lens = Some(counts(lens)?);
            self.change(Problem::kv_lens);
        }
        Ok(())
    }

    fn take_packed(&mut self, file: &File) -> Result<(), String> {
        let names = ["cu_seqlens_q", "cu_seqlens_kv"];
        if names.iter().all(|name| file.tensor(name).is_none()) {
            return Ok(());
        }
        let [q, kv] = [file.need(names[0])?, file.need(names[1])?];
        let sequences = match q.shape {
            [bounds] => bounds.checked_sub(1).and_then(|n| u32::try_from(n).ok()),
            _ => None,
        };
        let refused = || format!("{}: need shape [sequences + 1], got {:?}", q.name, q.shape);
        let sequences = sequences.ok_or_else(refused)?;
        kv.expect_shape(q.shape)?;
        self.optional.cu_seqlens_q = Some(q.counts()?);
        self.optional.cu_seqlens_kv = Some(kv.counts()?);
        self.change(|problem| problem.packed(sequences));
        Ok(())
    }

    /// What each query head has one of.
    fn take_heads(&mut self, file: &File) -> Result<(), String> {
        let heads = [self.problem.shape().q_heads as usize];
        let numbers = |all: Tensor<'_>| all.expect_shape(&heads).and_then(|()| all.narrow());
        if let Some(slopes) = file.tensor("alibi_slopes") {
            self.optional.slopes = Some(numbers(slopes)?);
            self.change(Problem::alibi);
        }
        if let Some(sinks) = file.tensor("sinks") {
            self.optional.sinks = Some(numbers(sinks)?);
            self.change(Problem::sinks);
        }
        Ok(())
    }

    fn change(&mut self, change: impl FnOnce(Problem) -> Problem) {
        self.problem = change(self.problem.clone());
    }

    /// [batch, head, token, dim] of the output.
    pub fn head_major(&self) -> [usize; 4] {
        let s = self.problem.shape();
        [s.batch, s.q_heads, s.q_len, s.value_dim].map(|n| n as usize)
    }
}

/// Sizes and layout of q, k, v and out.
fn problem(
    q: &Tensor<'_>,
    k: &Tensor<'_>,
    v: &Tensor<'_>,
    order: Order,
) -> Result<Problem, String> {
    let axes = |tensor: &Tensor<'_>| {
        let refused = || {
            let Tensor { name, shape, .. } = tensor;
            format!("{name}: need 4 axes, each below 2^32, got shape {shape:?}")
        };
        let axes: Option<Vec<u32>> = tensor.shape.iter().map(|&n| n.try_into().ok()).collect();
        match (axes.as_deref(), order) {
            (Some(&[batch, heads, tokens, dim]), Order::Bhnd)
            | (Some(&[batch, tokens, heads, dim]), Order::Bnhd) => Ok([batch, heads, tokens, dim]),
            _ => Err(refused()),
        }
    };
    let [batch, q_heads, q_len, head_dim] = axes(q)?;
    let [k_batch, kv_heads, kv_len, k_dim] = axes(k)?;
    let [v_batch, v_heads, v_len, value_dim] = axes(v)?;
    for (name, what, got, of, need) in [
        ("k", "batch", k_batch, "q", batch),
        ("k", "dim", k_dim, "q", head_dim),
        ("v", "batch", v_batch, "q", batch),
        ("v", "heads", v_heads, "k", kv_heads),
        ("v", "tokens", v_len, "k", kv_len),
    ] {
        if got != need {
            return Err(format!("{name}: {what}: need {need} as in {of}, got {got}"));
        }
    }
    for (name, dim) in [("q", head_dim), ("v", value_dim)] {
        if dim > WIDEST {
            return Err(format!("{name}: dim: need at most {WIDEST}, got {dim}"));
        }
    }
    if v.dtype != k.dtype {
        return Err(v.other_type(&format!("{:?} as of k", k.dtype)));
    }
    let shape = Shape::self_attention(batch, q_heads, q_len, head_dim)
        .kv_heads(kv_heads)
        .kv_len(kv_len)
        .value_dim(value_dim);
    let problem = Problem::new(shape);
    if order == Order::Bhnd {
        return Ok(problem);
    }
    let token_major = [
        (Operand::Q, Layout::token_major(q_heads, q_len, head_dim)),
        (Operand::K, Layout::token_major(kv_heads, kv_len, head_dim)),
        (Operand::V, Layout::token_major(kv_heads, kv_len, value_dim)),
        (Operand::O, Layout::token_major(q_heads, q_len, value_dim)),
    ];
    Ok(token_major.into_iter().fold(problem, |problem, (of, layout)| problem.layout(of, layout)))
}

/// An error of the library, with the file's names for what it is about.
pub fn told(error: &Error) -> String {
    let told = error.to_string();
    for (ours, theirs) in [("slopes", "alibi_slopes"), ("bias", "mask"), ("o", "out")] {
        match told.strip_prefix(ours) {
            Some(rest) if rest.starts_with([':', ' ']) => return format!("{theirs}{rest}"),
            _ => {}
        }
    }
    told
}
