//! One result from partial results over disjoint sets of keys.

mod bind;
mod places;
mod plan;

use crate::problem::Problem;
use crate::{Element, Error, Layout, Operand, Shape};
pub use bind::MergeBound;
pub use plan::MergePlan;

/// Attention over the union of the parts' keys, from O and LSE over each part:
///
/// ```text
/// LSE = ln(sum over parts of exp(LSE_n))        o = sum over parts of exp(LSE_n - LSE) o_n
/// ```
///
/// The parts lie stacked in [`Operand::Parts`], `[part, batch, q_heads, q_len, value_dim]`, and
/// [`Operand::PartsLse`], `[part, batch, q_heads, q_len]`; the result in [`Operand::O`] and
/// [`Operand::Lse`]. A part without keys for a row, LSE -inf, adds nothing to it, whatever its O
/// holds; a row without keys in any part is 0 and -inf.
///
/// ```
/// use wgpu_attention::{Merge, MergeInputs, Shape, cpu};
/// # fn main() -> Result<(), wgpu_attention::Error> {
/// // One row of two dims: a part with weight 1, one with weight 3, one that saw no key.
/// let merge = Merge::new(Shape::self_attention(1, 1, 1, 2), 3);
/// let lse = [0.0, 3f32.ln(), f32::NEG_INFINITY];
/// let merged = cpu::merge(&merge, MergeInputs::new(&[0.0, 4.0, 8.0, 4.0, f32::NAN, 1.0], &lse))?;
/// approx::assert_abs_diff_eq!(merged.o.as_slice(), [6.0, 4.0].as_slice(), epsilon = 1e-6);
/// approx::assert_abs_diff_eq!(merged.lse.unwrap()[0], 4f32.ln(), epsilon = 1e-6);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Merge {
    /// Of which batch, q_heads, q_len and value_dim count.
    shape: Shape,
    parts: u32,
    element: Element,
    accumulate: bool,
    in_place: bool,
    sinks: bool,
    /// Of O, LSE, parts, parts' LSE.
    layouts: [Option<Layout>; 4],
    /// Of parts, parts' LSE.
    strides: [Option<u32>; 2],
    misplaced: Option<Operand>,
}

const LAID_OUT: [Operand; 4] = [Operand::O, Operand::Lse, Operand::Parts, Operand::PartsLse];
const STACKED: [Operand; 2] = [Operand::Parts, Operand::PartsLse];

/// Numbers of rows must not wrap in the shader, a few past the last included.
const MOST_ROWS: u128 = 1 << 31;

impl Merge {
    /// Contiguous f32 parts into O and LSE, whose former content does not count.
    ///
    /// Of the shape only batch, q_heads, q_len and value_dim count.
    pub const fn new(shape: Shape, parts: u32) -> Merge {
        Merge {
            shape,
            parts,
            element: Element::F32,
            accumulate: false,
            in_place: false,
            sinks: false,
            layouts: [None; 4],
            strides: [None; 2],
            misplaced: None,
        }
    }

    /// Storage type of O and of the parts' O. LSE is f32, always.
    pub const fn element(self, element: Element) -> Merge {
        Merge { element, ..self }
    }

    /// What O and LSE hold already counts as one more part.
    pub const fn accumulate(self) -> Merge {
        Merge { accumulate: true, ..self }
    }

    /// The result is written over part 0; there is no O and no LSE besides. Not together with
    /// [`Merge::accumulate`], as part 0 counts anyway.
    pub const fn in_place(self) -> Merge {
        Merge { in_place: true, ..self }
    }

    /// [`Operand::Tables`] holds one logit a query head that joins the softmax and has no value;
    /// the LSE is without it. To be added once, at the last merge, to parts that were computed
    /// without.
    pub const fn sinks(self) -> Merge {
        Merge { sinks: true, ..self }
    }

    /// Strides of O, LSE, or of part 0 of the stacked ones; contiguous head-major if not called.
    /// The token axis is the query, and LSE has no last axis.
    pub fn layout(mut self, operand: Operand, layout: Layout) -> Merge {
        match LAID_OUT.iter().position(|&o| o == operand) {
            Some(at) => self.layouts[at] = Some(layout),
            None => self.misplaced = Some(operand),
        }
        self
    }

    /// From one part to the next in [`Operand::Parts`] or [`Operand::PartsLse`], in elements; 0
    /// repeats. As many as a part has if not called.
    pub fn part_stride(mut self, operand: Operand, stride: u32) -> Merge {
        match STACKED.iter().position(|&o| o == operand) {
            Some(at) => self.strides[at] = Some(stride),
            None => self.misplaced = Some(operand),
        }
        self
    }

    /// Checks every rule that needs no data and no device, the same for CPU and GPU.
    ///
    /// # Errors
    /// [`Error::Size`]; [`Error::Stride`] for written rows that overlap; [`Error::Unexpected`] for
    /// the layout of an operand that this merge does not have, and for what O holds in place.
    pub fn validate(&self) -> Result<(), Error> {
        if let Some(operand) = self.misplaced {
            return Err(Error::Unexpected { operand });
        }
        if self.element_of(Operand::O) == Element::Int8 {
            let (operand, need) = (Operand::O, "f32, f16 or bf16; only a cache holds int8");
            return Err(Error::Element { operand, need, got: Element::Int8 });
        }
        for (what, got) in [("value_dim", self.shape.value_dim), ("q_heads", self.shape.q_heads)] {
            if got == 0 {
                return Err(Error::Size { what, need: "at least 1", got: 0 });
            }
        }
        if self.in_place {
            let misled = self.accumulate.then_some(Operand::O);
            let given = LAID_OUT.into_iter().zip(self.layouts).take(2);
            let misled = misled.or_else(|| given.filter(|x| x.1.is_some()).map(|x| x.0).next());
            if let Some(operand) = misled {
                return Err(Error::Unexpected { operand });
            }
            if self.parts == 0 {
                return Err(Error::Size { what: "parts", need: "at least 1 in place", got: 0 });
            }
        }
        if self.rows() > MOST_ROWS {
            let (what, need) = ("batch * q_heads * q_len", "at most 2^31");
            return Err(Error::Size { what, need, got: self.rows() });
        }
        for operand in self.operands().into_iter().filter(|&o| o != Operand::Tables) {
            self.span(operand).check_size()?;
            if self.writes(operand) {
                self.row_span(operand).check_stack(self.stack(operand))?;
            }
        }
        Ok(())
    }

    /// Elements an operand's buffer must have, its layout's offset included. 0 for an operand that
    /// this merge does not have.
    pub fn elements(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Tables | Operand::Sinks if self.sinks => self.shape.q_heads.into(),
            Operand::Tables | Operand::Sinks => 0,
            _ if !self.operands().contains(&operand) => 0,
            _ if self.rows() > MOST_ROWS => u64::MAX,
            _ => u64::try_from(self.span(operand).end()).unwrap_or(u64::MAX),
        }
    }

    /// Bytes an operand's buffer must have: [`Merge::elements`] times the size of one, rounded up
    /// to whole words.
    pub fn bytes(&self, operand: Operand) -> u64 {
        let unit = u64::from(self.element_of(operand).bytes());
        self.elements(operand).saturating_mul(unit).div_ceil(4).saturating_mul(4)
    }

    /// The sizes. Only batch, q_heads, q_len and value_dim count.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// How many parts there are, without what O and LSE hold.
    pub const fn parts(&self) -> u32 {
        self.parts
    }
}
