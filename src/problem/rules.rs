//! The only place with size rules: what is legal, and what follows from it.

use super::Problem;
use super::layout::Span;
use crate::{Align, BiasLayout, Element, Error, Operand};

/// Longest token axis: positions and shifts then fit i32 arithmetic in the shaders.
const MAX_TOKENS: u32 = 1 << 30;
/// Queries that fill the largest tile.
const FULL_TILE: u32 = 64;

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
        self.check_cache()?;
        self.check_tables()?;
        self.check_layouts()
    }

    fn check_cache(&self) -> Result<(), Error> {
        let Some(cache) = &self.cache else {
            let bytes =
                [Operand::Q, Operand::K].into_iter().find(|&o| self.element_of(o).bytes() < 2);
            let need = "f32, f16 or bf16; only a cache holds int8";
            let refused = |operand| Error::Element { operand, need, got: Element::Int8 };
            return bytes.map_or(Ok(()), |operand| Err(refused(operand)));
        };
        cache.validate()?;
        if self.element_of(Operand::Q) == Element::Int8
            || self.element_of(Operand::K) != cache.element
        {
            let (operand, got) = (Operand::Cache, self.element_of(Operand::K));
            return Err(Error::Element {
                operand,
                need: "queries of 16 or 32 bits and the cache's own type",
                got,
            });
        }
        let own = [Operand::K, Operand::V].into_iter().find(|&o| self.has_own_layout(o));
        if let Some(operand) = own {
            return Err(Error::Unexpected { operand });
        }
        if self.sequences.is_some() {
            return Err(Error::Unexpected { operand: Operand::CuSeqlensKv });
        }
        let s = &self.shape;
        let same = [
            ("batch", "the cache's sequences", s.batch, cache.sequences),
            ("kv_heads", "the cache's", s.kv_heads, cache.kv_heads),
            ("head_dim", "the cache's", s.head_dim, cache.head_dim),
            ("value_dim", "the cache's", s.value_dim, cache.value_dim),
            ("kv_len", "at most the cache's capacity", s.kv_len, s.kv_len.min(cache.capacity)),
        ];
        match same.into_iter().find(|(_, _, got, want)| got != want) {
            Some((what, need, got, _)) => Err(Error::Size { what, need, got: got.into() }),
            None => Ok(()),
        }
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

    /// Query heads of a kv head whose rows share a tile of the fused kernel: all, while a tile is not
    /// full with the queries of one.
    pub(crate) fn row_group(&self) -> u32 {
        let s = &self.shape;
        let group = s.q_heads / s.kv_heads;
        let few = s.q_len < FULL_TILE && group <= MAX_TOKENS / FULL_TILE;
        if few && self.sequences.is_none() { group } else { 1 }
    }

    /// Rows of the heads that share tiles.
    pub(crate) fn riding_rows(&self) -> u32 {
        self.shape.q_len * self.row_group()
    }

    /// Texels that the rows of K and V take as f32.
    pub(crate) fn packed_texels(&self) -> u64 {
        let super::Shape { batch, kv_heads, kv_len, head_dim, value_dim, .. } = self.shape;
        let quads = u64::from(head_dim.div_ceil(4)) + u64::from(value_dim.div_ceil(4));
        (u64::from(batch) * u64::from(kv_heads) * u64::from(kv_len)).saturating_mul(quads)
    }

    /// Floating-point operations of a call with all its tokens, half of them if causal.
    pub(crate) fn work(&self) -> u64 {
        let super::Shape { batch, q_heads, q_len, kv_len, head_dim, value_dim, .. } = self.shape;
        let scores =
            u128::from(batch) * u128::from(q_heads) * u128::from(q_len) * u128::from(kv_len);
        let seen = if self.band.is_open() { scores } else { scores / 2 };
        let work = 2 * seen * (u128::from(head_dim) + u128::from(value_dim));
        work.min(u64::MAX.into()) as u64
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
        let tables = [Operand::QLens, Operand::KvLens, Operand::CuSeqlensQ];
        self.cache.is_some() || tables.iter().any(|&o| self.has_table(o))
    }

    /// True if the shift is each sequence's own: its keys - its queries.
    pub(crate) fn has_relative_shift(&self) -> bool {
        self.align == Some(Align::BottomRight) && self.has_lengths()
    }

    /// True if some query may not see a key that another query beside it sees.
    pub(crate) fn hides_keys(&self) -> bool {
        !self.band.is_open() || self.has_mask() || self.has_bias()
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
}
