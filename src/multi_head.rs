//! The whole attention layer: projections, attention over all heads, output projection.

mod plan;

use crate::problem::Layout;
use crate::{Element, Error, Operand, Problem, Projection, Rows, Shape};
pub use plan::{MultiHeadBound, MultiHeadPlan};

/// y = concat over heads of attention(x W_Q, c W_K, c W_V) W_O, with c = x (self-attention) or a
/// context (cross-attention).
///
/// x and y are `[batch, q_len, d_model]`, the context `[batch, kv_len, context_dim]`; heads lie
/// side by side in a token, so that nothing is transposed. "Attention Is All You Need" (Vaswani et
/// al., 2017), section 3.2.2.
///
/// ```
/// use wgpu_attention::{MultiHead, Problem, Shape};
/// # fn main() -> Result<(), wgpu_attention::Error> {
/// // 512 = 8 heads of 64, causal, over 256 tokens.
/// let heads = Problem::new(Shape::self_attention(1, 8, 256, 64)).causal();
/// MultiHead::new(512, heads).biases().residual().validate()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct MultiHead {
    d_model: u32,
    context_dim: Option<u32>,
    problem: Problem,
    biases: bool,
    residual: bool,
}

/// Every projected tensor begins on a multiple of so many elements.
const ALIGNMENT: u128 = 64;

impl MultiHead {
    /// Self-attention over tokens of `d_model` dims. The problem says how many heads of which
    /// size, how many tokens, band, bias, and what to give besides y; the layouts of Q, K, V and
    /// O are the layer's own.
    pub const fn new(d_model: u32, problem: Problem) -> MultiHead {
        MultiHead { d_model, context_dim: None, problem, biases: false, residual: false }
    }

    /// Cross-attention: keys and values come from [`Operand::Context`], with so many dims.
    pub fn context(self, context_dim: u32) -> MultiHead {
        MultiHead { context_dim: Some(context_dim), ..self }
    }

    /// Adds b_Q, b_K, b_V, b_O.
    pub fn biases(self) -> MultiHead {
        MultiHead { biases: true, ..self }
    }

    /// Adds x to the result.
    pub fn residual(self) -> MultiHead {
        MultiHead { residual: true, ..self }
    }

    /// The attention inside.
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }

    #[cfg(feature = "host")]
    pub(crate) fn with_problem(self, problem: Problem) -> MultiHead {
        MultiHead { problem, ..self }
    }

    /// Checks every rule that needs no data and no device.
    ///
    /// # Errors
    /// As [`Problem::validate`]; [`Error::Size`] for `d_model`, `context_dim` or products;
    /// [`Error::Unexpected`] for a layout of Q, K, V or O or an arena, which the layer decides;
    /// [`Error::Element`] for types other than f32;
    /// [`Error::Size`] also for self-attention with other lengths of queries and keys.
    pub fn validate(&self) -> Result<(), Error> {
        for (what, got) in [("d_model", self.d_model), ("context_dim", self.context_dim())] {
            if got == 0 {
                return Err(Error::Size { what, need: "at least 1", got: 0 });
            }
        }
        let laid_out = [Operand::Q, Operand::K, Operand::V, Operand::O];
        let misplaced = laid_out.into_iter().find(|&o| self.problem.has_own_layout(o));
        let arena = self.problem.is_arena().then_some(Operand::Arena);
        if let Some(operand) = misplaced.or(arena) {
            return Err(Error::Unexpected { operand });
        }
        self.problem.validate()?;
        for (operand, element) in [Operand::Q, Operand::K].map(|o| (o, self.problem.element_of(o)))
        {
            if element != Element::F32 {
                return Err(Error::Element { operand, need: "f32 in a layer", got: element });
            }
        }
        let shape = self.problem.shape();
        if self.context_dim.is_none() && shape.q_len != shape.kv_len {
            let need = "q_len, as keys come from the same tokens unless there is a context";
            return Err(Error::Size { what: "kv_len", need, got: shape.kv_len.into() });
        }
        self.stages()?;
        Ok(())
    }

    /// Elements an operand must have; 0 for one that this layer does not have.
    pub fn elements(&self, operand: Operand) -> u64 {
        let Ok(stages) = self.stages() else { return 0 };
        let of = |stage: usize, part| stages.projections[stage].elements(part);
        match operand {
            Operand::X => of(0, Operand::X),
            Operand::Context if self.context_dim.is_some() => of(1, Operand::X),
            Operand::Y => of(3, Operand::Y),
            Operand::Wq => of(0, Operand::W),
            Operand::Wk => of(1, Operand::W),
            Operand::Wv => of(2, Operand::W),
            Operand::Wo => of(3, Operand::W),
            Operand::Bq => of(0, Operand::B),
            Operand::Bk => of(1, Operand::B),
            Operand::Bv => of(2, Operand::B),
            Operand::Bo => of(3, Operand::B),
            _ if ATTENTION.contains(&operand) => self.problem.elements(operand),
            _ => 0,
        }
    }

    pub(crate) fn operands(&self) -> Vec<Operand> {
        let mut all =
            vec![Operand::X, Operand::Wq, Operand::Wk, Operand::Wv, Operand::Wo, Operand::Y];
        if self.context_dim.is_some() {
            all.push(Operand::Context);
        }
        if self.biases {
            all.extend([Operand::Bq, Operand::Bk, Operand::Bv, Operand::Bo]);
        }
        let has = self.problem.operands();
        all.extend(ATTENTION.into_iter().filter(|operand| has.contains(operand)));
        all
    }

    pub(crate) fn has_residual(&self) -> bool {
        self.residual
    }

    fn context_dim(&self) -> u32 {
        self.context_dim.unwrap_or(self.d_model)
    }

    /// The projections of queries, keys, values and output, and the attention between them.
    pub(crate) fn stages(&self) -> Result<Stages, Error> {
        let s: Shape = self.problem.shape();
        let product = |what: &'static str, a: u32, b: u32| {
            let need = "a product below 2^32";
            let got = u128::from(a) * u128::from(b);
            u32::try_from(got).map_err(|_| Error::Size { what, need, got })
        };
        let q_tokens = product("batch * q_len", s.batch, s.q_len)?;
        let kv_tokens = product("batch * kv_len", s.batch, s.kv_len)?;
        let q_dim = product("q_heads * head_dim", s.q_heads, s.head_dim)?;
        let k_dim = product("kv_heads * head_dim", s.kv_heads, s.head_dim)?;
        let v_dim = product("kv_heads * value_dim", s.kv_heads, s.value_dim)?;
        let o_dim = product("q_heads * value_dim", s.q_heads, s.value_dim)?;

        // Q, K, V one after the other in `Projected`, O in scratch, all token-major.
        let size = |tokens: u32, dim: u32| {
            (u128::from(tokens) * u128::from(dim)).next_multiple_of(ALIGNMENT)
        };
        let starts = [0, size(q_tokens, q_dim), size(q_tokens, q_dim) + size(kv_tokens, k_dim)];
        let projected = starts[2] + size(kv_tokens, v_dim);
        let fits = |at: u128| {
            let need = "less than 2^32 elements of queries, keys and values";
            u32::try_from(at).map_err(|_| Error::Size { what: "projected", need, got: at })
        };
        let [q, k, v] = [fits(starts[0])?, fits(starts[1])?, fits(starts[2])?];
        let at = |offset: u32, stride: u32| Rows { offset, stride };
        let mut projections = [
            Projection::new(q_tokens, self.d_model, q_dim).rows(Operand::Y, at(q, q_dim)),
            Projection::new(kv_tokens, self.context_dim(), k_dim).rows(Operand::Y, at(k, k_dim)),
            Projection::new(kv_tokens, self.context_dim(), v_dim).rows(Operand::Y, at(v, v_dim)),
            Projection::new(q_tokens, o_dim, self.d_model),
        ];
        if self.biases {
            projections = projections.map(Projection::bias);
        }
        if self.residual {
            projections[3] = projections[3].clone().residual();
        }
        for (stage, projection) in projections.iter().enumerate() {
            projection.validate().map_err(|error| in_stage(error, stage))?;
        }
        let token_major = Layout::token_major;
        let problem = self.problem.clone();
        let problem = problem
            .layout(Operand::Q, token_major(s.q_heads, s.q_len, s.head_dim).at(q))
            .layout(Operand::K, token_major(s.kv_heads, s.kv_len, s.head_dim).at(k))
            .layout(Operand::V, token_major(s.kv_heads, s.kv_len, s.value_dim).at(v))
            .layout(Operand::O, token_major(s.q_heads, s.q_len, s.value_dim));
        problem.validate()?;
        let projected_bytes = 4 * u64::from(fits(projected)?);
        let mixed_bytes = 4 * u64::from(fits(size(q_tokens, o_dim))?);
        Ok(Stages { projections, problem, projected_bytes, mixed_bytes })
    }
}

/// Operands of the attention that are the layer's own.
const ATTENTION: [Operand; 6] = [
    Operand::Bias,
    Operand::Mask,
    Operand::Tables,
    Operand::Lse,
    Operand::Scores,
    Operand::Weights,
];

/// A projection's error, with the layer's own names: its caller knows no w, but a w_q.
fn in_stage(error: Error, stage: usize) -> Error {
    let name = |what: &'static str| match what {
        "x" => ["x", "context", "context", "o"][stage],
        "w" => ["w_q", "w_k", "w_v", "w_o"][stage],
        "b" => ["b_q", "b_k", "b_v", "b_o"][stage],
        "y" => ["q", "k", "v", "y"][stage],
        "residual" => "x",
        other => other,
    };
    match error {
        Error::Size { what, need, got } => Error::Size { what: name(what), need, got },
        Error::Limit { what, need, got } => Error::Limit { what: name(what), need, got },
        other => other,
    }
}

/// What a layer is made of.
pub(crate) struct Stages {
    /// Of queries, keys, values, output.
    pub projections: [Projection; 4],
    pub problem: Problem,
    projected_bytes: u64,
    mixed_bytes: u64,
}
