//! Host slices of a merge.

use super::check_lengths;
use super::extras::check_sinks;
use crate::{Error, Merge, Operand};

/// The tensors of a [`Merge`]. `T` is the storage type of O.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MergeInputs<'a, T = f32> {
    /// O of the parts, `[part, batch, q_heads, q_len, value_dim]`.
    pub parts: &'a [T],
    /// LSE of the parts, `[part, batch, q_heads, q_len]`.
    pub parts_lse: &'a [f32],
    /// What O holds, for [`Merge::accumulate`].
    pub o: Option<&'a [T]>,
    /// What LSE holds, for [`Merge::accumulate`].
    pub lse: Option<&'a [f32]>,
    /// Sink logits, `[q_heads]`.
    pub sinks: Option<&'a [f32]>,
}

impl<'a, T> MergeInputs<'a, T> {
    /// The parts, nothing else.
    pub const fn new(parts: &'a [T], parts_lse: &'a [f32]) -> Self {
        MergeInputs { parts, parts_lse, o: None, lse: None, sinks: None }
    }

    /// The same with what O and LSE hold.
    #[must_use]
    pub const fn held(self, o: &'a [T], lse: &'a [f32]) -> Self {
        MergeInputs { o: Some(o), lse: Some(lse), ..self }
    }

    /// The same with sinks.
    #[must_use]
    pub const fn sinks(self, sinks: &'a [f32]) -> Self {
        MergeInputs { sinks: Some(sinks), ..self }
    }

    pub(crate) fn check(&self, merge: &Merge) -> Result<(), Error> {
        let given = [
            (Operand::Parts, Some(self.parts.len())),
            (Operand::PartsLse, Some(self.parts_lse.len())),
            (Operand::O, self.o.map(<[T]>::len)),
            (Operand::Lse, self.lse.map(<[f32]>::len)),
            (Operand::Sinks, self.sinks.map(<[f32]>::len)),
        ];
        let mut needed = vec![Operand::Parts, Operand::PartsLse];
        if merge.accumulates() {
            needed.extend([Operand::O, Operand::Lse]);
        }
        needed.extend(merge.has_sinks().then_some(Operand::Sinks));
        check_lengths(&given, &needed, |operand| {
            (merge.elements(operand), merge.has_own_layout(operand))
        })?;
        check_sinks(self.sinks)
    }
}
