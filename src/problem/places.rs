//! Where operands lie: layouts as given or by default, and the memory they span.

use super::layout::{ADDRESSABLE, Span};
use super::{Broadcast, LAID_OUT, Problem};
use crate::{BiasLayout, Error, Layout, Operand};
#[cfg(feature = "host")]
use crate::{Element, Group};

impl Problem {
    pub(crate) fn bias_layout(&self) -> Result<Option<BiasLayout>, Error> {
        self.bias.as_ref().map(|bias| self.broadcast(Operand::Bias, bias, 1)).transpose()
    }

    /// Of a mask on the host, in bools.
    pub(crate) fn mask_layout(&self) -> Result<Option<BiasLayout>, Error> {
        self.mask.as_ref().map(|mask| self.broadcast(Operand::Mask, mask, 1)).transpose()
    }

    /// Of a mask on the GPU, in bits: every row starts on a word.
    ///
    /// # Errors
    /// [`Error::Stride`] if it does not.
    pub(crate) fn mask_bits(&self) -> Result<Option<BiasLayout>, Error> {
        let Some(mask) = &self.mask else { return Ok(None) };
        let bits = self.broadcast(Operand::Mask, mask, 32)?;
        let rows = [bits.offset, bits.batch, bits.head, bits.query];
        match rows.into_iter().find(|n| n % 32 != 0) {
            Some(got) => {
                let need = "strides of whole words of 32 keys in a GPU buffer";
                Err(Error::Stride { operand: Operand::Mask, need, got })
            }
            None => Ok(Some(bits)),
        }
    }

    /// Strides of what is broadcast over the scores; rows of keys are filled up to a multiple of
    /// `row` elements.
    fn broadcast(
        &self,
        operand: Operand,
        given: &Broadcast,
        row: u64,
    ) -> Result<BiasLayout, Error> {
        let s = &self.shape;
        let full = [s.batch, s.q_heads, s.q_len, s.kv_len];
        let given = match given {
            Broadcast::Strides(strides) => return Ok(*strides),
            Broadcast::Shape(given) => given,
        };
        let refused = || Error::Broadcast { operand, need: full, got: given.clone() };
        if given.len() > 4 {
            return Err(refused());
        }
        let mut strides = [0u32; 4];
        let mut next = 1u64;
        for axis in (0..4).rev() {
            let n = given.len().checked_sub(4 - axis).map_or(1, |at| given[at]);
            if n != 1 && n != full[axis] {
                return Err(refused());
            }
            if n != 1 {
                let what = operand.name();
                let too_large = |_| Error::Size { what, need: ADDRESSABLE, got: next.into() };
                strides[axis] = u32::try_from(next).map_err(too_large)?;
                next = next.saturating_mul(n.into());
            }
            if axis == 3 {
                next = next.next_multiple_of(row);
            }
        }
        let [batch, head, query, key] = strides;
        Ok(BiasLayout { offset: 0, batch, head, query, key })
    }

    /// True if a host slice may be longer than what the layout uses.
    pub(crate) fn has_own_layout(&self, operand: Operand) -> bool {
        match operand {
            Operand::Bias => matches!(self.bias, Some(Broadcast::Strides(_))),
            Operand::Mask => matches!(self.mask, Some(Broadcast::Strides(_))),
            _ => LAID_OUT
                .iter()
                .position(|&o| o == operand)
                .is_some_and(|at| self.layouts[at].is_some()),
        }
    }

    /// True if Q, K, V, O can be read and written as whole quads.
    pub(crate) fn is_quads(&self) -> bool {
        let rows = [Operand::Q, Operand::O, Operand::K, Operand::V];
        let own = if self.cache.is_some() { &rows[..2] } else { &rows[..] };
        own.iter().all(|&operand| {
            let span = self.span(operand);
            let [rows @ .., (inner, _)] = span.axes;
            let strides = rows.into_iter().filter(|axis| axis.0 > 1).map(|axis| axis.1);
            strides.chain([span.offset, inner.into()]).all(|n| n % 4 == 0)
        })
    }

    /// Elements a host slice must have: for a bias or mask given by its shape, all of that shape,
    /// even where an empty axis leaves none of it in use.
    pub(crate) fn slice_elements(&self, operand: Operand) -> u64 {
        let given = match operand {
            Operand::Bias => &self.bias,
            Operand::Mask => &self.mask,
            _ => return self.elements(operand),
        };
        match given {
            Some(Broadcast::Shape(shape)) => {
                shape.iter().fold(1, |product, &n| product.saturating_mul(n.into()))
            }
            Some(Broadcast::Strides(_)) if operand == Operand::Mask => {
                let bools = self.mask_layout().ok().flatten().map(|l| self.scores_span(operand, l));
                bools.map_or(0, |span| u64::try_from(span.end()).unwrap_or(u64::MAX))
            }
            _ => self.elements(operand),
        }
    }

    /// The problem as host calls put it on a device: each operand in memory of its own, with these
    /// types; the mask contiguous; 16-bit output in rows of whole words.
    #[cfg(feature = "host")]
    pub(crate) fn on_device(&self, queries: Element, keys: Element) -> Problem {
        let mut problem = Problem { arena: false, ..self.clone() };
        problem.elements[Group::Queries as usize] = queries;
        problem.elements[Group::Keys as usize] = keys;
        if let Ok(Some(mask)) = self.mask_layout() {
            problem = problem.mask_shape(&self.mask_counts(mask));
        }
        if problem.check_packed_output().is_err() {
            let s = self.shape;
            let even = s.value_dim.next_multiple_of(2);
            problem = problem.layout(Operand::O, Layout::head_major(s.q_heads, s.q_len, even));
        }
        problem
    }

    /// How many different entries a mask has along each axis.
    #[cfg(feature = "host")]
    pub(crate) fn mask_counts(&self, mask: BiasLayout) -> [u32; 4] {
        let s = &self.shape;
        let strides = [mask.batch, mask.head, mask.query, mask.key];
        let full = [s.batch, s.q_heads, s.q_len, s.kv_len];
        std::array::from_fn(|axis| if strides[axis] == 0 { 1 } else { full[axis] })
    }

    fn scores_span(&self, operand: Operand, l: BiasLayout) -> Span {
        let s = &self.shape;
        let counts = [s.batch, s.q_heads, s.q_len, s.kv_len];
        let strides = [l.batch, l.head, l.query, l.key].map(u128::from);
        let axes = std::array::from_fn(|axis| (counts[axis].into(), strides[axis]));
        Span { operand, offset: l.offset.into(), axes }
    }

    /// Strides of a laid-out operand. Wraps on sizes that `validate` refuses.
    pub(crate) fn layout_of(&self, operand: Operand) -> Layout {
        let own = LAID_OUT.iter().position(|&o| o == operand).and_then(|at| self.layouts[at]);
        let (heads, tokens, inner) = self.counts(operand);
        own.unwrap_or(Layout::head_major(heads, tokens, inner))
    }

    fn counts(&self, operand: Operand) -> (u32, u32, u32) {
        let s = &self.shape;
        match operand {
            Operand::Q => (s.q_heads, s.q_len, s.head_dim),
            Operand::K => (s.kv_heads, s.kv_len, s.head_dim),
            Operand::V => (s.kv_heads, s.kv_len, s.value_dim),
            Operand::O => (s.q_heads, s.q_len, s.value_dim),
            Operand::Lse => (s.q_heads, s.q_len, 1),
            _ => (s.q_heads, s.q_len, s.kv_len),
        }
    }

    pub(crate) fn span(&self, operand: Operand) -> Span {
        let (heads, tokens, inner) = self.counts(operand);
        let counts = [self.shape.batch, heads, tokens, inner];
        let (offset, strides) = match operand {
            Operand::Bias => {
                let layout = self.bias_layout().ok().flatten().unwrap_or_default();
                return self.scores_span(operand, layout);
            }
            Operand::Mask => {
                // Words, of which the last of a row may be part empty.
                let bits = self.mask_bits().ok().flatten().unwrap_or_default();
                let bits = self.scores_span(operand, bits);
                let [rows @ .., (keys, key)] = bits.axes;
                let [batch, head, query] = rows.map(|(count, stride)| (count, stride / 32));
                let words = if key == 0 { keys.min(1) } else { keys.div_ceil(32) };
                let (offset, axes) = (bits.offset / 32, [batch, head, query, (words, 1)]);
                return Span { operand, offset, axes };
            }
            Operand::Tables => {
                let axes = [(1, 0), (1, 0), (1, 0), (self.elements(operand), 1)];
                return Span { operand, offset: 0, axes };
            }
            _ if self.has_own_layout(operand) => {
                let l = self.layout_of(operand);
                (u128::from(l.offset), [l.batch, l.head, l.token, 1].map(u128::from))
            }
            // Contiguous, not wrapped: what does not fit is for `check_size` to see.
            _ => {
                let token = u128::from(inner);
                let head = u128::from(tokens) * token;
                (0, [u128::from(heads) * head, head, token, 1])
            }
        };
        Span {
            operand,
            offset,
            axes: std::array::from_fn(|axis| (counts[axis].into(), strides[axis])),
        }
    }
}
