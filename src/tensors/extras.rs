//! Everything of a call besides Q, K and V.

use super::check_lengths;
use crate::{Error, Operand, Problem};

/// Bias, mask, lengths, packed sequences, slopes and sinks: what the problem has of them, and
/// nothing else.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Extras<'a> {
    /// Additive bias, broadcast to `[batch, q_heads, q_len, kv_len]`.
    pub bias: Option<&'a [f32]>,
    /// True = may attend, broadcast likewise.
    pub mask: Option<&'a [bool]>,
    /// Queries that exist, `[batch]`.
    pub q_lens: Option<&'a [u32]>,
    /// Keys that exist, `[batch]`.
    pub kv_lens: Option<&'a [u32]>,
    /// Where each packed sequence's queries begin and the last one's end, `[sequences + 1]`.
    pub cu_seqlens_q: Option<&'a [u32]>,
    /// The same for keys.
    pub cu_seqlens_kv: Option<&'a [u32]>,
    /// ALiBi slopes, `[q_heads]`.
    pub slopes: Option<&'a [f32]>,
    /// Sink logits, `[q_heads]`.
    pub sinks: Option<&'a [f32]>,
}

/// The methods that add one extra each, for whatever holds them.
macro_rules! builders {
    ($($extras:ident.)?) => {
        /// The same with an additive bias.
        #[must_use]
        pub const fn bias(mut self, bias: &'a [f32]) -> Self {
            self.$($extras.)?bias = Some(bias);
            self
        }

        /// The same with a boolean mask: true = may attend.
        #[must_use]
        pub const fn mask(mut self, mask: &'a [bool]) -> Self {
            self.$($extras.)?mask = Some(mask);
            self
        }

        /// The same with the number of queries of each batch entry.
        #[must_use]
        pub const fn q_lens(mut self, q_lens: &'a [u32]) -> Self {
            self.$($extras.)?q_lens = Some(q_lens);
            self
        }

        /// The same with the number of keys of each batch entry.
        #[must_use]
        pub const fn kv_lens(mut self, kv_lens: &'a [u32]) -> Self {
            self.$($extras.)?kv_lens = Some(kv_lens);
            self
        }

        /// The same with the bounds of packed sequences, of queries and of keys.
        #[must_use]
        pub const fn cu_seqlens(mut self, q: &'a [u32], kv: &'a [u32]) -> Self {
            self.$($extras.)?cu_seqlens_q = Some(q);
            self.$($extras.)?cu_seqlens_kv = Some(kv);
            self
        }

        /// The same with ALiBi slopes.
        #[must_use]
        pub const fn slopes(mut self, slopes: &'a [f32]) -> Self {
            self.$($extras.)?slopes = Some(slopes);
            self
        }

        /// The same with sink logits.
        #[must_use]
        pub const fn sinks(mut self, sinks: &'a [f32]) -> Self {
            self.$($extras.)?sinks = Some(sinks);
            self
        }
    };
}
pub(super) use builders;

impl<'a> Extras<'a> {
    /// None of them.
    pub const NONE: Extras<'static> = Extras {
        bias: None,
        mask: None,
        q_lens: None,
        kv_lens: None,
        cu_seqlens_q: None,
        cu_seqlens_kv: None,
        slopes: None,
        sinks: None,
    };

    builders!();

    pub(crate) fn check(&self, problem: &Problem) -> Result<(), Error> {
        let given = [
            (Operand::Bias, self.bias.map(<[f32]>::len)),
            (Operand::Mask, self.mask.map(<[bool]>::len)),
            (Operand::QLens, self.q_lens.map(<[u32]>::len)),
            (Operand::KvLens, self.kv_lens.map(<[u32]>::len)),
            (Operand::CuSeqlensQ, self.cu_seqlens_q.map(<[u32]>::len)),
            (Operand::CuSeqlensKv, self.cu_seqlens_kv.map(<[u32]>::len)),
            (Operand::Slopes, self.slopes.map(<[f32]>::len)),
            (Operand::Sinks, self.sinks.map(<[f32]>::len)),
        ];
        let mut needed = problem.operands();
        needed.extend(Operand::TABLES.into_iter().filter(|&o| problem.has_table(o)));
        check_lengths(&given, &needed, |operand| {
            (problem.slice_elements(operand), problem.has_own_layout(operand))
        })?;
        self.check_values(problem)
    }

    fn check_values(&self, problem: &Problem) -> Result<(), Error> {
        let shape = problem.shape();
        let lens = [("q_lens", self.q_lens, shape.q_len), ("kv_lens", self.kv_lens, shape.kv_len)];
        for (what, lens, capacity) in lens {
            if let Some(&got) = lens.unwrap_or(&[]).iter().find(|&&n| n > capacity) {
                let need = "at most the capacity in the shape";
                return Err(Error::Size { what, need, got: got.into() });
            }
        }
        let bounds = [
            ("cu_seqlens_q", self.cu_seqlens_q, shape.q_len),
            ("cu_seqlens_kv", self.cu_seqlens_kv, shape.kv_len),
        ];
        for (what, bounds, capacity) in bounds {
            let Some(bounds) = bounds else { continue };
            if let Some(&got) = bounds.first().filter(|&&first| first != 0) {
                return Err(Error::Size { what, need: "0 at first", got: got.into() });
            }
            if let Some(pair) = bounds.windows(2).find(|pair| pair[1] < pair[0]) {
                let need = "numbers that never fall";
                return Err(Error::Size { what, need, got: pair[1].into() });
            }
            if let Some(&got) = bounds.last().filter(|&&last| last > capacity) {
                let need = "at most the capacity in the shape";
                return Err(Error::Size { what, need, got: got.into() });
            }
        }
        let bad = |xs: Option<&[f32]>, is_good: fn(f32) -> bool| {
            xs.unwrap_or(&[]).iter().copied().find(|&x| !is_good(x))
        };
        if let Some(got) = bad(self.slopes, f32::is_finite) {
            return Err(Error::Value { what: "slopes", need: "finite numbers", got });
        }
        check_sinks(self.sinks)
    }

    /// What [`Operand::Tables`] holds.
    #[cfg(feature = "host")]
    pub(crate) fn tables(&self) -> Vec<u32> {
        let lens = [self.q_lens, self.kv_lens, self.cu_seqlens_q, self.cu_seqlens_kv];
        let mut words: Vec<u32> = lens.into_iter().flatten().flatten().copied().collect();
        let heads = [self.slopes, self.sinks];
        words.extend(heads.into_iter().flatten().flatten().map(|x| x.to_bits()));
        words
    }

    /// The mask's bits, as [`Operand::Mask`] says, for the problem as a device has it.
    #[cfg(feature = "host")]
    pub(crate) fn mask_words(&self, problem: &Problem) -> Result<Vec<u32>, Error> {
        let (Some(mask), Some(at)) = (self.mask, problem.mask_layout()?) else {
            return Ok(Vec::new());
        };
        let [batch, head, query, key] = problem.mask_counts(at).map(u64::from);
        let mut words = Vec::new();
        for row in 0..batch * head * query {
            let (b, h, i) = (row / (head * query), row / query % head, row % query);
            let start = u64::from(at.offset)
                + b * u64::from(at.batch)
                + h * u64::from(at.head)
                + i * u64::from(at.query);
            let row = &mask[start as usize..(start + key) as usize];
            let word = |bools: &[bool]| {
                bools.iter().rev().fold(0u32, |word, &may| word << 1 | u32::from(may))
            };
            words.extend(row.chunks(32).map(word));
        }
        Ok(words)
    }
}

pub(super) fn check_sinks(sinks: Option<&[f32]>) -> Result<(), Error> {
    let is_bad = |x: &f32| x.is_nan() || *x == f32::INFINITY;
    match sinks.unwrap_or(&[]).iter().copied().find(is_bad) {
        Some(got) => Err(Error::Value { what: "sinks", need: "numbers below infinity", got }),
        None => Ok(()),
    }
}
