//! What is to be computed: sizes, layouts, scale, band, bias, outputs. No data, no device.

mod layout;
mod rules;
mod terms;

pub(crate) use layout::Span;
pub use layout::{BiasLayout, Layout};
pub use terms::{Align, Band, Element, Group, Operand, Outputs, Shape};

/// One attention call: everything but the data.
///
/// ```
/// use wgpu_attention::{Align, Problem, Shape};
/// # fn main() -> Result<(), wgpu_attention::Error> {
/// // 32 query heads over 8 key heads, 16 new tokens after 1,000 cached ones.
/// let shape = Shape::self_attention(1, 32, 16, 128).kv_heads(8).kv_len(1016);
/// let problem = Problem::new(shape).causal().align(Align::BottomRight).lse();
/// problem.validate()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Problem {
    pub(crate) shape: Shape,
    scale: Option<f32>,
    softcap: f32,
    align: Option<Align>,
    band: Band,
    elements: [Element; 2],
    /// Of Q, K, V, O, LSE, scores, weights, in that order; `None` is contiguous.
    layouts: [Option<Layout>; 7],
    bias: Option<Bias>,
    outputs: Outputs,
    arena: bool,
    /// An operand that was given a layout it cannot have, for `validate` to report.
    misplaced: Option<Operand>,
}

#[derive(Clone, Debug, PartialEq)]
enum Bias {
    Strides(BiasLayout),
    Shape(Vec<u32>),
}

const LAID_OUT: [Operand; 7] = [
    Operand::Q,
    Operand::K,
    Operand::V,
    Operand::O,
    Operand::Lse,
    Operand::Scores,
    Operand::Weights,
];

impl Problem {
    /// Unmasked f32 attention, contiguous head-major operands, scale 1/sqrt(head_dim), only O.
    pub const fn new(shape: Shape) -> Problem {
        Problem {
            shape,
            scale: None,
            softcap: 0.0,
            align: None,
            band: Band { left: None, right: None },
            elements: [Element::F32; 2],
            layouts: [None; 7],
            bias: None,
            outputs: Outputs { lse: false, scores: false, weights: false },
            arena: false,
            misplaced: None,
        }
    }

    /// No key after the query's position. Needs [`Problem::align`] when q_len != kv_len.
    pub fn causal(mut self) -> Problem {
        self.band.right = Some(0);
        self
    }

    /// Only keys around the query's position. Needs [`Problem::align`] when q_len != kv_len.
    pub fn band(self, band: Band) -> Problem {
        Problem { band, ..self }
    }

    /// How query and key positions align. Only a band uses it.
    pub fn align(self, align: Align) -> Problem {
        Problem { align: Some(align), ..self }
    }

    /// Factor on q . k, any finite number; 1/sqrt(head_dim) if not called.
    pub fn scale(self, scale: f32) -> Problem {
        Problem { scale: Some(scale), ..self }
    }

    /// s = softcap * tanh(s / softcap), before the bias. Finite; 0 turns it off.
    pub fn softcap(self, softcap: f32) -> Problem {
        Problem { softcap, ..self }
    }

    /// Storage type of Q and O, or of K and V.
    pub fn element(mut self, group: Group, element: Element) -> Problem {
        self.elements[group as usize] = element;
        self
    }

    /// Strides of one operand; contiguous head-major if not called. For LSE, scores and weights
    /// the token axis is the query, and LSE has no last axis. Bias has a layout of its own kind,
    /// [`Problem::bias`]; for it, scratch and arena, `validate` reports
    /// [`Error::Unexpected`](crate::Error::Unexpected).
    pub fn layout(mut self, operand: Operand, layout: Layout) -> Problem {
        match LAID_OUT.iter().position(|&o| o == operand) {
            Some(at) => self.layouts[at] = Some(layout),
            None => self.misplaced = Some(operand),
        }
        self
    }

    /// An additive bias with these strides.
    pub fn bias(self, layout: BiasLayout) -> Problem {
        Problem { bias: Some(Bias::Strides(layout)), ..self }
    }

    /// A contiguous additive bias of this shape, broadcast from the right to
    /// `[batch, q_heads, q_len, kv_len]`: `&[nk]`, `&[nq, nk]`, `&[b, 1, 1, nk]`, ...
    pub fn bias_shape(self, shape: &[u32]) -> Problem {
        Problem { bias: Some(Bias::Shape(shape.to_vec())), ..self }
    }

    /// Also compute LSE.
    pub fn lse(mut self) -> Problem {
        self.outputs.lse = true;
        self
    }

    /// Also compute the scores. Stores q_len * kv_len numbers a head.
    pub fn scores(mut self) -> Problem {
        self.outputs.scores = true;
        self
    }

    /// Also compute the weights. Stores q_len * kv_len numbers a head.
    pub fn weights(mut self) -> Problem {
        self.outputs.weights = true;
        self
    }

    /// All operands but scratch lie in one buffer, at their layouts' offsets; any of them may be
    /// packed or interleaved as long as nothing written overlaps anything else, which `validate`
    /// checks. Host calls take slices all the same, each of which may be the whole arena.
    pub fn arena(self) -> Problem {
        Problem { arena: true, ..self }
    }

    /// Each operand in memory of its own: what host calls use.
    #[cfg(feature = "host")]
    pub(crate) fn separate(self) -> Problem {
        Problem { arena: false, ..self }
    }

    /// The sizes.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// What is computed besides O.
    pub const fn outputs(&self) -> Outputs {
        self.outputs
    }

    /// Elements an operand's buffer or slice must have, its layout's offset included; 0 for an
    /// operand that this problem does not have, and for scratch, which is the plan's.
    pub fn elements(&self, operand: Operand) -> u64 {
        let of = |o: Operand| u64::try_from(self.span(o).end()).unwrap_or(u64::MAX);
        match operand {
            Operand::Scratch => 0,
            Operand::Arena if self.arena => self.operands().into_iter().map(of).max().unwrap_or(0),
            _ if self.operands().contains(&operand) => of(operand),
            _ => 0,
        }
    }

    /// Q, K, V, O and what the problem has besides.
    pub(crate) fn operands(&self) -> Vec<Operand> {
        let mut all = vec![Operand::Q, Operand::K, Operand::V, Operand::O];
        let optional = [
            (self.bias.is_some(), Operand::Bias),
            (self.outputs.lse, Operand::Lse),
            (self.outputs.scores, Operand::Scores),
            (self.outputs.weights, Operand::Weights),
        ];
        all.extend(optional.into_iter().filter(|o| o.0).map(|o| o.1));
        all
    }

    /// True if a host slice may be longer than what the layout uses.
    pub(crate) fn has_own_layout(&self, operand: Operand) -> bool {
        match operand {
            Operand::Bias => matches!(self.bias, Some(Bias::Strides(_))),
            _ => LAID_OUT
                .iter()
                .position(|&o| o == operand)
                .is_some_and(|at| self.layouts[at].is_some()),
        }
    }

    pub(crate) fn is_arena(&self) -> bool {
        self.arena
    }

    pub(crate) fn has_bias(&self) -> bool {
        self.bias.is_some()
    }

    pub(crate) fn softcap_value(&self) -> f32 {
        self.softcap
    }
}
