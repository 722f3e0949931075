//! What a case has besides Q, K, V and bias: in the problem and as data at once.

use wgpu_attention::{BiasLayout, Element, Group};

use super::Case;

/// Whether a key of a mask's row may be attended to.
pub type May = fn(usize, usize) -> bool;

impl Case {
    /// A contiguous mask of this shape; `may` of its row, over all axes, and its key.
    pub fn masked(mut self, shape: &[u32], may: May) -> Case {
        self.problem = self.problem.mask_shape(shape);
        let keys = shape.last().map_or(1, |&n| n as usize);
        let n = shape.iter().product::<u32>() as usize;
        self.given.mask = Some((0..n).map(|at| may(at / keys, at % keys)).collect());
        self
    }

    /// A mask with strides, whose bools repeat after `period`.
    pub fn masked_by(mut self, at: BiasLayout, period: usize) -> Case {
        let s = self.problem.shape();
        let axes =
            [(s.batch, at.batch), (s.q_heads, at.head), (s.q_len, at.query), (s.kv_len, at.key)];
        let last: u32 = axes.iter().map(|(n, stride)| (n - 1) * stride).sum();
        self.problem = self.problem.mask(at);
        self.given.mask = Some((0..=at.offset + last).map(|x| x as usize % period != 1).collect());
        self
    }

    pub fn q_lens(mut self, lens: &[u32]) -> Case {
        self.problem = self.problem.q_lens();
        self.given.q_lens = Some(lens.into());
        self
    }

    pub fn kv_lens(mut self, lens: &[u32]) -> Case {
        self.problem = self.problem.kv_lens();
        self.given.kv_lens = Some(lens.into());
        self
    }

    /// Sequences one after another, by where each begins and the last one ends.
    pub fn packed(mut self, q: &[u32], kv: &[u32]) -> Case {
        self.problem = self.problem.packed(q.len() as u32 - 1);
        self.given.cu_seqlens = Some([q.into(), kv.into()]);
        self
    }

    /// Slopes, repeated for as many heads as there are.
    pub fn alibi(mut self, slopes: &[f32]) -> Case {
        self.problem = self.problem.alibi();
        self.given.slopes = Some(self.for_heads(slopes));
        self
    }

    /// Sinks, repeated likewise.
    pub fn sinks(mut self, sinks: &[f32]) -> Case {
        self.problem = self.problem.sinks();
        self.given.sinks = Some(self.for_heads(sinks));
        self
    }

    fn for_heads(&self, some: &[f32]) -> Vec<f32> {
        let heads = self.problem.shape().q_heads as usize;
        some.iter().copied().cycle().take(heads).collect()
    }

    pub fn stored_as(mut self, queries: Element, keys: Element) -> Case {
        self.problem = self.problem.element(Group::Queries, queries).element(Group::Keys, keys);
        self.types = [queries, keys];
        self
    }

    /// Rows of the head-major Q, K and V that no sequence has, by length or bounds, hold NaN.
    pub fn poisoned(self) -> Case {
        Case { poisoned: true, ..self }
    }
}
