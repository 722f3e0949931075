//! What a merge has, and where it lies.

use super::{LAID_OUT, Merge, Problem, STACKED};
use crate::problem::Span;
use crate::{Element, Error, Layout, Operand};

impl Merge {
    pub(crate) fn operands(&self) -> Vec<Operand> {
        let mut all = STACKED.to_vec();
        if !self.in_place {
            all.extend([Operand::O, Operand::Lse]);
        }
        all.extend(self.sinks.then_some(Operand::Tables));
        all
    }

    pub(crate) const fn is_in_place(&self) -> bool {
        self.in_place
    }

    pub(crate) const fn accumulates(&self) -> bool {
        self.accumulate
    }

    pub(crate) const fn has_sinks(&self) -> bool {
        self.sinks
    }

    /// What the result's O and LSE are written to.
    pub(crate) const fn home(&self) -> [Operand; 2] {
        if self.in_place { STACKED } else { [Operand::O, Operand::Lse] }
    }

    pub(super) fn writes(&self, operand: Operand) -> bool {
        self.home().contains(&operand)
    }

    pub(crate) fn element_of(&self, operand: Operand) -> Element {
        match operand {
            Operand::O | Operand::Parts => self.element,
            _ => Element::F32,
        }
    }

    /// Query rows of all heads.
    pub(crate) fn rows(&self) -> u128 {
        [self.shape.batch, self.shape.q_heads, self.shape.q_len]
            .into_iter()
            .map(u128::from)
            .product()
    }

    /// True if a host slice may be longer than what the layout uses.
    pub(crate) fn has_own_layout(&self, operand: Operand) -> bool {
        let at = |all: &[Operand]| all.iter().position(|&o| o == operand);
        at(&LAID_OUT).is_some_and(|at| self.layouts[at].is_some())
            || at(&STACKED).is_some_and(|at| self.strides[at].is_some())
    }

    /// Strides of O, LSE or part 0. Wraps on sizes that `validate` refuses.
    pub(crate) fn layout_of(&self, operand: Operand) -> Layout {
        self.like(operand).0.layout_of(self.like(operand).1)
    }

    /// From one part to the next, 0 for what is not stacked.
    pub(crate) fn stride_of(&self, operand: Operand) -> u32 {
        // Without a second part nothing moves, and what does not fit is for `check_size` to see.
        self.stack(operand).1 as u32
    }

    /// O or LSE, or part 0.
    pub(super) fn row_span(&self, operand: Operand) -> Span {
        let (like, home) = self.like(operand);
        let mut span = Span { operand, ..like.span(home) };
        if STACKED.contains(&operand) && self.parts == 0 {
            span.axes[0].0 = 0;
        }
        span
    }

    /// All of an operand, as far as its end tells.
    pub(super) fn span(&self, operand: Operand) -> Span {
        let (count, stride) = self.stack(operand);
        let first = self.row_span(operand);
        Span { offset: first.offset + u128::from(count.saturating_sub(1)) * stride, ..first }
    }

    /// (count, stride) of the parts; (1, 0) for what is not stacked.
    pub(super) fn stack(&self, operand: Operand) -> (u64, u128) {
        let Some(at) = STACKED.iter().position(|&o| o == operand) else { return (1, 0) };
        let inner = if operand == Operand::Parts { self.shape.value_dim.into() } else { 1 };
        let stride = self.strides[at].map_or(self.rows() * inner, u128::from);
        (self.parts.into(), stride)
    }

    /// An attention call whose O or LSE lies as this operand does.
    fn like(&self, operand: Operand) -> (Problem, Operand) {
        let home = match operand {
            Operand::O | Operand::Parts => Operand::O,
            _ => Operand::Lse,
        };
        let own = LAID_OUT.iter().position(|&o| o == operand).and_then(|at| self.layouts[at]);
        let problem = Problem::new(self.shape);
        (own.map_or(problem.clone(), |layout| problem.layout(home, layout)), home)
    }

    /// 16-bit results are written as words, which two rows must not share.
    pub(crate) fn check_packed_output(&self) -> Result<(), Error> {
        let [operand, _] = self.home();
        let span = self.row_span(operand);
        if self.element.bytes() == 4 || span.is_empty() {
            return Ok(());
        }
        let moving = span.axes[..3].iter().copied().chain([self.stack(operand)]);
        let strides = moving.filter(|axis| axis.0 > 1).map(|axis| axis.1);
        match strides.chain([span.offset]).find(|stride| stride % 2 != 0) {
            Some(odd) => {
                let need = "even strides and offset for 16-bit output in a GPU buffer";
                let got = u32::try_from(odd).unwrap_or(u32::MAX);
                Err(Error::Stride { operand, need, got })
            }
            None => Ok(()),
        }
    }
}
