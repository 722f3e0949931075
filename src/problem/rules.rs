//! The only place with size rules: what is legal, and what follows from it.

use super::layout::{ADDRESSABLE, Span};
use super::{Broadcast, LAID_OUT, Problem};
use crate::{Align, BiasLayout, Error, Layout, Operand};
#[cfg(feature = "host")]
use crate::{Element, Group};

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
        self.check_tables()?;
        self.check_layouts()
    }

    fn check_tables(&self) -> Result<(), Error> {
        let Some(sequences) = self.sequences else { return self.check_alibi() };
        if self.shape.batch != 1 {
            let (need, got) = ("1, as packed sequences lie one after another", self.shape.batch);
            return Err(Error::Size { what: "batch", need, got: got.into() });
        }
        if sequences > MAX_TOKENS {
            let got = sequences.into();
            return Err(Error::Size { what: "sequences", need: "at most 2^30", got });
        }
        // Packed sequences have lengths already.
        let lens = [Operand::QLens, Operand::KvLens].into_iter().find(|&o| self.has_table(o));
        lens.map_or(self.check_alibi(), |operand| Err(Error::Unexpected { operand }))
    }

    /// Distances must fit i32.
    fn check_alibi(&self) -> Result<(), Error> {
        match self.align {
            Some(Align::Shift(shift))
                if self.has_table(Operand::Slopes) && shift.unsigned_abs() > MAX_TOKENS =>
            {
                let need = "from -2^30 to 2^30 with ALiBi";
                Err(Error::Value { what: "shift", need, got: shift as f32 })
            }
            _ => Ok(()),
        }
    }

    fn check_layouts(&self) -> Result<(), Error> {
        let layouts = [(Operand::Bias, self.bias_layout()?), (Operand::Mask, self.mask_layout()?)];
        for (operand, layout) in layouts {
            if let Some(BiasLayout { key: got @ 2.., .. }) = layout {
                let need = "a key stride of 0 or 1";
                return Err(Error::Stride { operand, need, got });
            }
        }
        let spans: Vec<Span> = self.operands().into_iter().map(|o| self.span(o)).collect();
        for span in &spans {
            span.check_size()?;
        }
        // In an arena, memory is compared in parts that every type is made of.
        let parts = |span: &Span| span.in_parts(self.element_of(span.operand).bytes() / 2);
        let homes = || spans.iter().enumerate().filter(|(_, s)| s.operand != Operand::Tables);
        for (at, written) in homes().filter(|(_, s)| s.operand.is_written()) {
            written.check_injective()?;
            for (_, other) in homes().filter(|&(other, _)| other != at) {
                if self.arena && !parts(written).disjoint(&parts(other)) {
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
            None if self.band.is_open() && !self.has_table(Operand::Slopes) => Ok(0),
            None if q_len == kv_len && !self.has_lengths() => Ok(0),
            None => Err(Error::Align { q_len, kv_len }),
        }
    }

    /// True if sequences have lengths of their own.
    pub(crate) fn has_lengths(&self) -> bool {
        [Operand::QLens, Operand::KvLens, Operand::CuSeqlensQ].iter().any(|&o| self.has_table(o))
    }

    /// True if the shift is each sequence's own: its keys - its queries.
    pub(crate) fn has_relative_shift(&self) -> bool {
        self.align == Some(Align::BottomRight) && self.has_lengths()
    }

    /// (low, high, shift): query i stands at key i + shift and sees the keys i + low ..= i + high.
    /// Clamped so that i + high + 1 and i + low stay within i32 for every legal i, with the same
    /// meaning. With a relative shift the sequence's own is to be added to all three, by
    /// [`Problem::band_of`].
    pub(crate) fn band_limits(&self, q_len: u32, kv_len: u32) -> Result<[i32; 3], Error> {
        let shift = if self.has_relative_shift() { 0 } else { self.shift(q_len, kv_len)? };
        let most = i64::from(MAX_TOKENS);
        let low = self.band.left.map_or(-most, |left| shift - i64::from(left));
        let high = self.band.right.map_or(most - 1, |right| shift + i64::from(right));
        let low = low.clamp(-most, most) as i32;
        Ok([low, high.clamp(-most, most - 1) as i32, shift as i32])
    }

    /// The same for a sequence of so many queries and keys.
    pub(crate) fn band_of(&self, limits: [i32; 3], queries: u32, keys: u32) -> [i64; 3] {
        let [low, high, shift] = limits.map(i64::from);
        let most = i64::from(MAX_TOKENS);
        let relative = i64::from(keys) - i64::from(queries);
        match self.has_relative_shift() {
            true => {
                [(low + relative).max(-most), (high + relative).min(most - 1), shift + relative]
            }
            false => [low, high, shift],
        }
    }

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

    /// True if Q, K, V, O can be read and written as whole quads.
    pub(crate) fn is_quads(&self) -> bool {
        [Operand::Q, Operand::K, Operand::V, Operand::O].into_iter().all(|operand| {
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

    /// Packed 16-bit results: two rows must not share a word.
    pub(crate) fn check_packed_output(&self) -> Result<(), Error> {
        let span = self.span(Operand::O);
        if self.element_of(Operand::O).bytes() == 4 || span.is_empty() {
            return Ok(());
        }
        let moving = span.axes[..3].iter().filter(|axis| axis.0 > 1).map(|axis| axis.1);
        match moving.chain([span.offset]).find(|stride| stride % 2 != 0) {
            Some(odd) => {
                let need = "even strides and offset for 16-bit output in a GPU buffer";
                let got = u32::try_from(odd).unwrap_or(u32::MAX);
                Err(Error::Stride { operand: Operand::O, need, got })
            }
            None => Ok(()),
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
