//! The only place with size rules: what is legal, and what follows from it.

use super::layout::{ADDRESSABLE, Span};
use super::{Bias, LAID_OUT, Problem};
use crate::{Align, BiasLayout, Error, Layout, Operand};

/// Longest token axis: positions and shifts then fit i32 arithmetic in the shaders.
const MAX_TOKENS: u32 = 1 << 30;

impl Problem {
    /// Checks every rule that needs no data and no device, the same for CPU and GPU.
    ///
    /// # Errors
    /// [`Error::Size`], [`Error::HeadGroups`], [`Error::Align`], [`Error::Value`],
    /// [`Error::Stride`], [`Error::Broadcast`], [`Error::Overlap`], [`Error::Unexpected`].
    pub fn validate(&self) -> Result<(), Error> {
        if let Some(operand) = self.misplaced {
            return Err(Error::Unexpected { operand });
        }
        let s = &self.shape;
        let at_least_one = [
            ("head_dim", s.head_dim),
            ("value_dim", s.value_dim),
            ("q_heads", s.q_heads),
            ("kv_heads", s.kv_heads),
        ];
        for (what, got) in at_least_one {
            if got == 0 {
                return Err(Error::Size { what, need: "at least 1", got: 0 });
            }
        }
        for (what, got) in [("q_len", s.q_len), ("kv_len", s.kv_len)] {
            if got > MAX_TOKENS {
                return Err(Error::Size { what, need: "at most 2^30", got: got.into() });
            }
        }
        if !s.q_heads.is_multiple_of(s.kv_heads) {
            return Err(Error::HeadGroups { q_heads: s.q_heads, kv_heads: s.kv_heads });
        }
        if !self.scale_value().is_finite() {
            return Err(Error::Value {
                what: "scale",
                need: "a finite number",
                got: self.scale_value(),
            });
        }
        if !(self.softcap.is_finite() && self.softcap >= 0.0) {
            let need = "a finite number, positive or 0 for none";
            return Err(Error::Value { what: "softcap", need, got: self.softcap });
        }
        self.shift(s.q_len, s.kv_len)?;
        self.check_layouts()
    }

    fn check_layouts(&self) -> Result<(), Error> {
        let bias = self.bias_layout()?;
        if let Some(BiasLayout { key: got @ 2.., .. }) = bias {
            let need = "a key stride of 0 or 1";
            return Err(Error::Stride { operand: Operand::Bias, need, got });
        }
        let spans: Vec<Span> = self.operands().into_iter().map(|o| self.span(o)).collect();
        for span in &spans {
            span.check_size()?;
        }
        for (at, written) in spans.iter().enumerate().filter(|(_, s)| s.operand.is_written()) {
            written.check_injective()?;
            for (_, other) in spans.iter().enumerate().filter(|&(other, _)| other != at) {
                if self.arena && !written.disjoint(other) {
                    let need = "disjoint elements within the arena";
                    let (operand, other) = (written.operand, other.operand);
                    return Err(Error::Overlap { operand, other, need });
                }
            }
        }
        Ok(())
    }

    /// The scale as f32, for kernels.
    pub(crate) fn scale_value(&self) -> f32 {
        self.scale.unwrap_or(self.scale_f64() as f32)
    }

    /// The scale as the reference uses it: the default is not rounded to f32.
    pub(crate) fn scale_f64(&self) -> f64 {
        self.scale.map_or(1.0 / f64::from(self.shape.head_dim).sqrt(), f64::from)
    }

    fn shift(&self, q_len: u32, kv_len: u32) -> Result<i64, Error> {
        match self.align {
            Some(Align::TopLeft) => Ok(0),
            Some(Align::BottomRight) => Ok(i64::from(kv_len) - i64::from(q_len)),
            Some(Align::Shift(shift)) => Ok(shift.into()),
            None if q_len == kv_len || self.band.is_open() => Ok(0),
            None => Err(Error::Align { q_len, kv_len }),
        }
    }

    /// (low, high): query i sees the keys i + low ..= i + high. Clamped so that i + high + 1 and
    /// i + low stay within i32 for every legal i, with the same meaning.
    pub(crate) fn band_limits(&self, q_len: u32, kv_len: u32) -> Result<(i32, i32), Error> {
        let shift = self.shift(q_len, kv_len)?;
        let most = i64::from(MAX_TOKENS);
        let low = self.band.left.map_or(-most, |left| shift - i64::from(left));
        let high = self.band.right.map_or(most - 1, |right| shift + i64::from(right));
        Ok((low.clamp(-most, most) as i32, high.clamp(-most, most - 1) as i32))
    }

    pub(crate) fn bias_layout(&self) -> Result<Option<BiasLayout>, Error> {
        let s = &self.shape;
        let full = [s.batch, s.q_heads, s.q_len, s.kv_len];
        let given = match &self.bias {
            None => return Ok(None),
            Some(Bias::Strides(strides)) => return Ok(Some(*strides)),
            Some(Bias::Shape(given)) => given,
        };
        let refused =
            || Error::Broadcast { operand: Operand::Bias, need: full, got: given.clone() };
        if given.len() > 4 {
            return Err(refused());
        }
        let mut strides = [0u32; 4];
        let mut next = 1u64;
        for (back, &n) in given.iter().rev().enumerate() {
            let axis = 3 - back;
            if n != 1 && n != full[axis] {
                return Err(refused());
            }
            if n != 1 {
                let too_large =
                    |_| Error::Size { what: "bias", need: ADDRESSABLE, got: next.into() };
                strides[axis] = u32::try_from(next).map_err(too_large)?;
                next = next.saturating_mul(n.into());
            }
        }
        let [batch, head, query, key] = strides;
        Ok(Some(BiasLayout { offset: 0, batch, head, query, key }))
    }

    /// True if Q, K, V, O can be read and written as whole quads.
    pub(crate) fn is_quads(&self) -> bool {
        [Operand::Q, Operand::K, Operand::V, Operand::O].into_iter().all(|operand| {
            let span = self.span(operand);
            let [rows @ .., (inner, _)] = span.axes;
            let strides = rows.into_iter().filter(|axis| axis.0 > 1).map(|axis| axis.1);
            strides.chain([span.offset.into(), inner.into()]).all(|n| n % 4 == 0)
        })
    }

    /// Elements a host slice must have: for a bias given by its shape, all of that shape, even
    /// where an empty axis leaves none of it in use.
    pub(crate) fn slice_elements(&self, operand: Operand) -> u64 {
        match (operand, &self.bias) {
            (Operand::Bias, Some(Bias::Shape(shape))) => {
                shape.iter().map(|&n| u64::from(n)).product()
            }
            _ => self.elements(operand),
        }
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
        let (offset, strides) = match (operand, self.bias_layout()) {
            (Operand::Bias, Ok(Some(b))) => {
                (b.offset, [b.batch, b.head, b.query, b.key].map(u128::from))
            }
            _ if self.has_own_layout(operand) => {
                let l = self.layout_of(operand);
                (l.offset, [l.batch, l.head, l.token, 1].map(u128::from))
            }
            // Contiguous, not wrapped: what does not fit is for `check_size` to see.
            _ => {
                let token = u128::from(inner);
                let head = u128::from(tokens) * token;
                (0, [u128::from(heads) * head, head, token, 1])
            }
        };
        Span { operand, offset, axes: std::array::from_fn(|axis| (counts[axis], strides[axis])) }
    }
}
