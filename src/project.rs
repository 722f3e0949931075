//! Projection of tokens by a weight matrix: how queries, keys and values are made.

mod plan;

use crate::problem::Span;
use crate::{Error, Operand};
pub use plan::{ProjectionBound, ProjectionPlan};

/// Rows of a matrix in a buffer or slice, in elements; a row itself is contiguous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rows {
    /// The first element.
    pub offset: u32,
    /// From one row to the next; 0 repeats.
    pub stride: u32,
}

/// Y = X W + b (+ residual): X `[tokens, input]`, W `[input, output]`, b `[output]`, residual and Y
/// `[tokens, output]`, all f32.
///
/// W is stored with its input dim first, as in y = x W; a matrix stored as `[output, input]`
/// (PyTorch's `nn.Linear`) has to be transposed first.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Projection {
    tokens: u32,
    input: u32,
    output: u32,
    bias: bool,
    residual: bool,
    /// Of X, W, B, residual, Y.
    rows: [Option<Rows>; 5],
    misplaced: Option<Operand>,
}

const LAID_OUT: [Operand; 5] = [Operand::X, Operand::W, Operand::B, Operand::Residual, Operand::Y];

impl Projection {
    /// Contiguous Y = X W.
    pub const fn new(tokens: u32, input: u32, output: u32) -> Projection {
        let (bias, residual, rows) = (false, false, [None; 5]);
        Projection { tokens, input, output, bias, residual, rows, misplaced: None }
    }

    /// Adds a bias b, [`Operand::B`], to every token.
    pub fn bias(self) -> Projection {
        Projection { bias: true, ..self }
    }

    /// Adds a residual, [`Operand::Residual`], to the result.
    pub fn residual(self) -> Projection {
        Projection { residual: true, ..self }
    }

    /// Where the rows of X, W, B, residual or Y lie; contiguous from element 0 if not called.
    pub fn rows(mut self, operand: Operand, rows: Rows) -> Projection {
        match LAID_OUT.iter().position(|&o| o == operand) {
            Some(at) => self.rows[at] = Some(rows),
            None => self.misplaced = Some(operand),
        }
        self
    }

    /// Checks every rule that needs no data and no device.
    ///
    /// # Errors
    /// [`Error::Size`], [`Error::Stride`] for rows of Y that overlap, [`Error::Unexpected`] for
    /// rows of an operand that no projection has.
    pub fn validate(&self) -> Result<(), Error> {
        if let Some(operand) = self.misplaced {
            return Err(Error::Unexpected { operand });
        }
        for (what, got) in [("input", self.input), ("output", self.output)] {
            if got == 0 {
                return Err(Error::Size { what, need: "at least 1", got: 0 });
            }
        }
        for operand in self.operands() {
            self.span(operand).check_size()?;
        }
        self.span(Operand::Y).check_injective()
    }

    /// Elements an operand must have; 0 for one that this projection does not have.
    pub fn elements(&self, operand: Operand) -> u64 {
        match self.operands().contains(&operand) {
            true => u64::try_from(self.span(operand).end()).unwrap_or(u64::MAX),
            false => 0,
        }
    }

    pub(crate) fn operands(&self) -> Vec<Operand> {
        let has = |operand: &Operand| match operand {
            Operand::B => self.bias,
            Operand::Residual => self.residual,
            _ => true,
        };
        LAID_OUT.into_iter().filter(has).collect()
    }

    pub(crate) fn has_own_rows(&self, operand: Operand) -> bool {
        LAID_OUT.iter().position(|&o| o == operand).is_some_and(|at| self.rows[at].is_some())
    }

    /// (tokens, input, output)
    pub(crate) const fn sizes(&self) -> (u32, u32, u32) {
        (self.tokens, self.input, self.output)
    }

    /// (rows, elements of a row)
    fn counts(&self, operand: Operand) -> (u32, u32) {
        match operand {
            Operand::X => (self.tokens, self.input),
            Operand::W => (self.input, self.output),
            Operand::B => (1, self.output),
            _ => (self.tokens, self.output),
        }
    }

    pub(crate) fn rows_of(&self, operand: Operand) -> Rows {
        let own = LAID_OUT.iter().position(|&o| o == operand).and_then(|at| self.rows[at]);
        own.unwrap_or(Rows { offset: 0, stride: self.counts(operand).1 })
    }

    fn span(&self, operand: Operand) -> Span {
        let (rows, inner) = self.counts(operand);
        let Rows { offset, stride } = self.rows_of(operand);
        let offset = offset.into();
        Span {
            operand,
            offset,
            axes: [(1, 0), (1, 0), (rows.into(), stride.into()), (inner.into(), 1)],
        }
    }

    fn is_quads(&self) -> bool {
        [Operand::X, Operand::W, Operand::Y].into_iter().all(|operand| {
            let (rows, inner) = self.counts(operand);
            let Rows { offset, stride } = self.rows_of(operand);
            [offset, inner, if rows > 1 { stride } else { 0 }].iter().all(|n| n % 4 == 0)
        })
    }
}
