//! What is to be computed: sizes, layouts, scale, band, bias, outputs. No data, no device.

mod layout;
mod operand;
mod places;
mod rules;
mod sizes;
mod terms;

pub(crate) use layout::Span;
pub use layout::{BiasLayout, Layout};
pub use operand::Operand;
pub use terms::{Align, Band, Element, Group, Outputs, Shape};

use crate::CacheShape;

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
    bias: Option<Broadcast>,
    mask: Option<Broadcast>,
    /// Which of [`Operand::TABLES`] there are, without packed sequences' own.
    tables: [bool; 6],
    /// Packed sequences.
    sequences: Option<u32>,
    outputs: Outputs,
    arena: bool,
    /// K and V come from a cache.
    cache: Option<CacheShape>,
    /// An operand that was given a layout it cannot have, for `validate` to report.
    misplaced: Option<Operand>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Broadcast {
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
            mask: None,
            tables: [false; 6],
            sequences: None,
            outputs: Outputs { lse: false, scores: false, weights: false },
            arena: false,
            cache: None,
            misplaced: None,
        }
    }

    /// No key after the query's position. Needs [`Problem::align`] when q_len != kv_len, or when
    /// sequences have lengths of their own.
    pub fn causal(mut self) -> Problem {
        self.band.right = Some(0);
        self
    }

    /// Only keys around the query's position. Needs [`Problem::align`] as [`Problem::causal`] does.
    pub fn band(self, band: Band) -> Problem {
        Problem { band, ..self }
    }

    /// How query and key positions align. Only a band and ALiBi use it.
    pub fn align(self, align: Align) -> Problem {
        Problem { align: Some(align), ..self }
    }

    /// Factor on q . k, any finite number; 1/sqrt(head_dim) if not called. GPUs multiply it to q, to k or,
    /// for f16 keys, to q . k: each of these must be finite as well.
    pub fn scale(self, scale: f32) -> Problem {
        Problem { scale: Some(scale), ..self }
    }

    /// s = softcap * tanh(s / softcap), before the bias. Finite; 0 turns it off.
    pub fn softcap(self, softcap: f32) -> Problem {
        Problem { softcap, ..self }
    }

    /// Storage type of Q and O, or of K and V, in GPU buffers. Host calls take the types of their
    /// slices.
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
        Problem { bias: Some(Broadcast::Strides(layout)), ..self }
    }

    /// A contiguous additive bias of this shape, broadcast from the right to
    /// `[batch, q_heads, q_len, kv_len]`: `&[nk]`, `&[nq, nk]`, `&[b, 1, 1, nk]`, ...
    pub fn bias_shape(self, shape: &[u32]) -> Problem {
        Problem { bias: Some(Broadcast::Shape(shape.to_vec())), ..self }
    }

    /// A boolean mask with these strides: true, or a bit that is set, means "may attend".
    pub fn mask(self, layout: BiasLayout) -> Problem {
        Problem { mask: Some(Broadcast::Strides(layout)), ..self }
    }

    /// A contiguous boolean mask of this shape, broadcast as [`Problem::bias_shape`]. In a GPU
    /// buffer each row of keys is filled up to a whole number of words.
    pub fn mask_shape(self, shape: &[u32]) -> Problem {
        Problem { mask: Some(Broadcast::Shape(shape.to_vec())), ..self }
    }

    /// Only the first q_lens\[b\] queries of batch entry b exist; q_len is their capacity. Rows past
    /// it are written: O = 0, LSE = -inf.
    pub fn q_lens(self) -> Problem {
        self.with_table(Operand::QLens)
    }

    /// Only the first kv_lens\[b\] keys of batch entry b exist; kv_len is their capacity.
    pub fn kv_lens(self) -> Problem {
        self.with_table(Operand::KvLens)
    }

    /// s -= slope_h * |i + shift - j| before the bias ("Train Short, Test Long", Press et al.,
    /// 2022), with one slope a query head. Needs [`Problem::align`] as [`Problem::causal`] does.
    pub fn alibi(self) -> Problem {
        self.with_table(Operand::Slopes)
    }

    /// One learned logit a query head takes part in the softmax and has no value: weights sum to
    /// less than 1. The LSE is without it.
    pub fn sinks(self) -> Problem {
        self.with_table(Operand::Sinks)
    }

    /// So many sequences one after another in one batch entry: sequence s owns the queries
    /// cu_seqlens_q\[s\] .. cu_seqlens_q\[s + 1\] and the keys likewise, and sees only its own;
    /// q_len and kv_len are the totals' capacities. Band, alignment and ALiBi count within a
    /// sequence; bias, mask, scores and weights have all tokens of all sequences on their axes.
    /// Queries past the last sequence are written: O = 0, LSE = -inf.
    pub fn packed(self, sequences: u32) -> Problem {
        Problem { sequences: Some(sequences), ..self }
    }

    fn with_table(mut self, operand: Operand) -> Problem {
        if let Some(at) = Operand::TABLES.iter().position(|&o| o == operand) {
            self.tables[at] = true;
        }
        self
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

    /// All operands but scratch and tables lie in one buffer, at their layouts' offsets, each in
    /// elements of its own type; any of them may be packed or interleaved as long as nothing
    /// written overlaps anything else, which `validate` checks. Host calls take slices all the
    /// same, each of which may be the whole arena.
    pub fn arena(self) -> Problem {
        Problem { arena: true, ..self }
    }

    /// K and V come from a cache of this shape, and are no operands: batch entry b reads sequence b,
    /// of which as many keys exist as the cache holds; kv_len is at most its capacity. For plans;
    /// host calls and the CPU reference take the rows of a [`cpu::KvCache`](crate::cpu::KvCache).
    pub fn cached(mut self, cache: CacheShape) -> Problem {
        self.elements[Group::Keys as usize] = cache.element;
        Problem { cache: Some(cache), ..self }
    }

    /// A cached problem with K and V in plain f32 operands instead, and the lengths in
    /// [`Operand::KvLens`].
    pub(crate) fn over_rows(&self) -> Problem {
        let mut plain = Problem { cache: None, ..self.clone() }.kv_lens();
        plain.elements[Group::Keys as usize] = Element::F32;
        plain
    }

    /// The sizes.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// What is computed besides O.
    pub const fn outputs(&self) -> Outputs {
        self.outputs
    }

    pub(crate) fn cache(&self) -> Option<&CacheShape> {
        self.cache.as_ref()
    }

    pub(crate) fn is_arena(&self) -> bool {
        self.arena
    }

    pub(crate) fn has_bias(&self) -> bool {
        self.bias.is_some()
    }

    pub(crate) fn has_mask(&self) -> bool {
        self.mask.is_some()
    }

    /// Packed sequences, if this problem has such.
    pub(crate) fn sequences(&self) -> Option<u32> {
        self.sequences
    }

    /// The same, contiguous operands instead of an arena.
    #[cfg(all(feature = "host", not(target_family = "wasm")))]
    pub(crate) fn out_of_arena(&self) -> Problem {
        let layouts = if self.arena { [None; 7] } else { self.layouts };
        Problem { arena: false, layouts, ..self.clone() }
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn band_value(&self) -> Band {
        self.band
    }

    pub(crate) fn softcap_value(&self) -> f32 {
        self.softcap
    }
}
