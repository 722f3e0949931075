//! Where the elements of an operand lie: strides, extents, and who overlaps whom.

use crate::{Error, Operand};

/// Strides of an operand `[batch, head, token, dim]`, in elements; the last axis is contiguous.
///
/// A stride of 0 repeats. Head-major, token-major and packed QKV are all just layouts:
///
/// ```
/// use wgpu_attention::Layout;
/// // [batch, token, 3, head, dim] with 12 heads of 64: Q is at 0, K at 768, V at 1536.
/// let tokens = 128;
/// let k = Layout { offset: 12 * 64, batch: tokens * 3 * 12 * 64, head: 64, token: 3 * 12 * 64 };
/// assert_eq!(k.token, 2304);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The first element.
    pub offset: u32,
    /// From one batch entry to the next.
    pub batch: u32,
    /// From one head to the next.
    pub head: u32,
    /// From one token to the next.
    pub token: u32,
}

impl Layout {
    /// Contiguous `[batch, head, token, dim]`.
    pub const fn head_major(heads: u32, tokens: u32, dim: u32) -> Layout {
        let head = tokens.wrapping_mul(dim);
        Layout { offset: 0, batch: heads.wrapping_mul(head), head, token: dim }
    }

    /// Contiguous `[batch, token, head, dim]`.
    pub const fn token_major(heads: u32, tokens: u32, dim: u32) -> Layout {
        let token = heads.wrapping_mul(dim);
        Layout { offset: 0, batch: tokens.wrapping_mul(token), head: dim, token }
    }

    /// The same strides, beginning at another element.
    #[must_use]
    pub const fn at(self, offset: u32) -> Layout {
        Layout { offset, ..self }
    }

    /// The first element of a row.
    pub(crate) fn start(self, [batch, head, token]: [u32; 3]) -> usize {
        let at = u64::from(self.offset)
            + u64::from(batch) * u64::from(self.batch)
            + u64::from(head) * u64::from(self.head)
            + u64::from(token) * u64::from(self.token);
        at as usize
    }
}

/// Strides of the additive bias or the boolean mask `[batch, head, query, key]`, in elements; 0
/// repeats along an axis.
///
/// An element of a mask is a key: a bool on the host, a bit on the GPU, where every row starts on a
/// word of 32, so that all but the key's stride must be multiples of 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BiasLayout {
    /// The first element.
    pub offset: u32,
    /// From one batch entry to the next.
    pub batch: u32,
    /// From one query head to the next.
    pub head: u32,
    /// From one query token to the next.
    pub query: u32,
    /// From one key token to the next: 0 or 1.
    pub key: u32,
}

/// An operand laid out: how many there are along each axis, and how far apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub operand: Operand,
    pub offset: u128,
    /// (count, stride) of batch, head, token and the last axis. Wide, so that sizes which do not
    /// fit are reported as they are.
    pub axes: [(u64, u128); 4],
}

/// Element indices are u32 in the shaders.
pub(super) const ADDRESSABLE: &str = "at most 2^32 elements from the first to the last one used";

impl Span {
    pub fn is_empty(&self) -> bool {
        self.axes.iter().any(|axis| axis.0 == 0)
    }

    /// One past the last element used, 0 if there is none.
    pub fn end(&self) -> u128 {
        if self.is_empty() {
            return 0;
        }
        let last: u128 = self.axes.iter().map(|&(n, stride)| u128::from(n - 1) * stride).sum();
        self.offset + last + 1
    }

    /// The same memory in units a `parts`-th as large.
    pub fn in_parts(&self, parts: u32) -> Span {
        let n = u128::from(parts);
        let [outer @ .., (count, stride)] = self.axes;
        let [batch, head, token] = outer.map(|(count, stride)| (count, stride * n));
        // The last axis is contiguous, or one element that repeats.
        let count = if stride == 0 { count.min(1) } else { count };
        Span {
            offset: self.offset * n,
            axes: [batch, head, token, (count * u64::from(parts), 1)],
            ..*self
        }
    }

    /// Indices must fit in 32 bits.
    pub fn check_size(&self) -> Result<(), Error> {
        let end = self.end();
        if end > 1 << 32 {
            let (what, need) = (self.operand.name(), ADDRESSABLE);
            return Err(Error::Size { what, need, got: end });
        }
        Ok(())
    }

    /// A written operand must not write one element twice: each stride, in rising order, must
    /// pass what the smaller ones cover.
    pub fn check_injective(&self) -> Result<(), Error> {
        self.check_stack((1, 0))
    }

    /// The same for a stack of such operands: (count, stride).
    pub fn check_stack(&self, stack: (u64, u128)) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        let mut axes = self.rising();
        axes.extend(Some(stack).filter(|axis| axis.0 > 1));
        axes.sort_by_key(|axis| axis.1);
        let mut covered = 1u128;
        for (count, stride) in axes {
            if stride < covered {
                let need = "strides that keep its written rows apart";
                let got = u32::try_from(stride).unwrap_or(u32::MAX);
                return Err(Error::Stride { operand: self.operand, need, got });
            }
            covered += u128::from(count - 1) * stride;
        }
        Ok(())
    }

    /// True if the two certainly share no element. Conservative: it may miss exotic cases.
    ///
    /// For a candidate period g, every axis whose stride is a multiple of g only shifts by whole
    /// periods; what the other axes cover is an interval of residues modulo g. Two operands whose
    /// intervals are disjoint modulo g are disjoint.
    pub fn disjoint(&self, other: &Span) -> bool {
        if self.is_empty() || other.is_empty() {
            return true;
        }
        let (a, b) = (self.hull(), other.hull());
        if a.1 <= b.0 || b.1 <= a.0 {
            return true;
        }
        if let Some((one, another)) = self.within_blocks(other) {
            return one.disjoint(&another);
        }
        let strides = self.rising().into_iter().chain(other.rising()).map(|axis| axis.1);
        strides.filter(|&g| g > 1).any(|g| {
            let (a, b) = (self.residues(g), other.residues(g));
            let fits = |x: (u128, u128), y: (u128, u128)| x.0 + x.1 <= y.0 && y.0 + y.1 <= x.0 + g;
            fits(a, b) || fits(b, a)
        })
    }

    /// Both without their largest axis, if they share its stride and stay within the same blocks of
    /// that many elements: then block k of one can only meet block k of the other.
    fn within_blocks(&self, other: &Span) -> Option<(Span, Span)> {
        let largest = self.rising().last()?.1;
        let one = |span: &Span| {
            let at = span.axes.iter().position(|axis| axis.0 > 1 && axis.1 == largest)?;
            let mut inner = *span;
            inner.axes[at].0 = 1;
            Some(inner)
        };
        let (one, another) = (one(self)?, one(other)?);
        let first = self.offset.min(other.offset);
        let fits = one.end().max(another.end()) - first <= largest;
        (fits && other.rising().last()?.1 == largest).then_some((one, another))
    }

    /// Axes along which something moves, in rising order of stride.
    fn rising(&self) -> Vec<(u64, u128)> {
        let mut axes: Vec<_> = self.axes.into_iter().filter(|axis| axis.0 > 1).collect();
        axes.sort_by_key(|axis| axis.1);
        axes
    }

    fn hull(&self) -> (u128, u128) {
        (self.offset, self.end())
    }

    /// First residue modulo g, and how many from there on may be touched.
    fn residues(&self, g: u128) -> (u128, u128) {
        let within = self.axes.iter().filter(|axis| axis.0 > 0 && axis.1 % g != 0);
        let width: u128 = within.map(|axis| u128::from(axis.0 - 1) * axis.1).sum();
        (self.offset % g, width + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u32, axes: [(u32, u32); 4]) -> Span {
        let axes = axes.map(|(count, stride)| (count.into(), stride.into()));
        Span { operand: Operand::O, offset: offset.into(), axes }
    }

    #[test]
    fn interleaved_rows_are_disjoint() {
        // [batch 2, token 5, 4 parts, head 3, dim 8]: part p of the packed rows.
        let part = |p: u32| span(p * 24, [(2, 480), (3, 8), (5, 96), (8, 1)]);
        for (a, b) in [(0, 1), (0, 3), (2, 3), (3, 1)] {
            assert!(part(a).disjoint(&part(b)), "{a} {b}");
        }
        assert!(!part(1).disjoint(&part(1)));
        assert!(!part(1).disjoint(&span(47, [(1, 0), (1, 0), (1, 0), (1, 1)])));
        assert!(part(1).disjoint(&span(48, [(1, 0), (1, 0), (1, 0), (24, 1)])));
        // Packed per token, batches padded to no multiple of a row.
        let padded = |p: u32| span(p * 8, [(2, 324), (1, 0), (10, 32), (8, 1)]);
        assert!(padded(0).disjoint(&padded(3)) && padded(2).disjoint(&padded(1)));
    }

    #[test]
    fn disjoint_never_contradicts_enumeration() {
        let elements = |s: &Span| {
            let mut all = Vec::new();
            for b in 0..s.axes[0].0 {
                for h in 0..s.axes[1].0 {
                    for t in 0..s.axes[2].0 {
                        for d in 0..s.axes[3].0 {
                            let at = [b, h, t, d];
                            let at = at.iter().zip(s.axes).map(|(&n, axis)| u128::from(n) * axis.1);
                            all.push(s.offset + at.sum::<u128>());
                        }
                    }
                }
            }
            all
        };
        let mut state = 7u32;
        let mut next = move |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % n
        };
        let (mut apart, mut injective) = (0, 0);
        for _ in 0..4000 {
            let mut draw = || {
                span(
                    next(20),
                    [(next(3), next(30)), (next(3), next(9)), (next(4), next(9)), (1 + next(4), 1)],
                )
            };
            let (a, b) = (draw(), draw());
            let (x, y) = (elements(&a), elements(&b));
            if a.disjoint(&b) {
                apart += 1;
                assert!(!x.iter().any(|e| y.contains(e)), "{a:?} {b:?}");
            }
            let mut unique = x.clone();
            unique.sort_unstable();
            unique.dedup();
            if a.check_injective().is_ok() {
                injective += 1;
                assert_eq!(unique.len(), x.len(), "{a:?}");
            }
            assert_eq!(a.end(), x.iter().max().map_or(0, |&m| m + 1));
        }
        assert!(apart > 100 && injective > 100);
    }

    #[test]
    fn sizes_past_32_bits_are_errors() {
        assert!(span(u32::MAX, [(1, 0), (1, 0), (1, 0), (1, 1)]).check_size().is_ok());
        assert!(span(u32::MAX, [(1, 0), (1, 0), (1, 0), (2, 1)]).check_size().is_err());
        let huge = span(
            0,
            [(u32::MAX, u32::MAX), (u32::MAX, u32::MAX), (u32::MAX, u32::MAX), (u32::MAX, 1)],
        );
        assert!(huge.check_size().is_err());
        assert!(span(u32::MAX, [(0, 9), (1, 0), (1, 0), (2, 1)]).check_size().is_ok());
        let row = span(0, [(1, 0), (1, 0), (1, 0), (u32::MAX, 1)]);
        assert_eq!(row.in_parts(2).end(), 2 * u128::from(u32::MAX));
    }
}
