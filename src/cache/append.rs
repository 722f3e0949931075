//! New rows at the end of each sequence of a cache.

mod plan;

pub use plan::{AppendBound, AppendPlan};

use crate::buffers::first_bound;
use crate::{CacheShape, Element, Error, Group, Layout, Operand, Problem, Rotary, Shape};

/// Rows of K `[sequence, kv_head, token, head_dim]` and V that go to the end of each sequence of a
/// cache, turned by their positions if there is a [`Rotary`]; and queries of the same tokens, turned
/// likewise.
///
/// A sequence gets the first n of its tokens here, as [`KvCache::extend`](crate::KvCache::extend)
/// says.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Append {
    pub(crate) cache: CacheShape,
    pub(crate) tokens: u32,
    element: Element,
    q_heads: Option<u32>,
    pub(crate) rotary: Option<Rotary>,
    /// Of K, V, Q and rotated, in that order.
    layouts: [Option<Layout>; 4],
    misplaced: Option<Operand>,
}

const LAID_OUT: [Operand; 4] = [Operand::K, Operand::V, Operand::Q, Operand::Rotated];

impl Append {
    /// Up to `tokens` contiguous f32 rows for each sequence, as they are.
    pub const fn new(cache: CacheShape, tokens: u32) -> Append {
        let (element, layouts) = (Element::F32, [None; 4]);
        let (q_heads, rotary, misplaced) = (None, None, None);
        Append { cache, tokens, element, q_heads, rotary, layouts, misplaced }
    }

    /// Storage type of the new rows (and queries), whatever the cache's.
    pub fn element(self, element: Element) -> Append {
        Append { element, ..self }
    }

    /// Turns K by [`Operand::Rotary`].
    pub fn rotary(self, rotary: Rotary) -> Append {
        Append { rotary: Some(rotary), ..self }
    }

    /// Turns [`Operand::Q`], `[sequence, q_head, token, head_dim]`, too, into [`Operand::Rotated`].
    pub fn queries(self, q_heads: u32) -> Append {
        Append { q_heads: Some(q_heads), ..self }
    }

    /// Strides of K, V, Q or rotated; contiguous head-major if not called.
    pub fn layout(mut self, operand: Operand, layout: Layout) -> Append {
        match LAID_OUT.iter().position(|&o| o == operand) {
            Some(at) => self.layouts[at] = Some(layout),
            None => self.misplaced = Some(operand),
        }
        self
    }

    /// Checks every rule that needs no data and no device, the same for CPU and GPU.
    ///
    /// # Errors
    /// What [`CacheShape::validate`] and [`Problem::validate`] find; [`Error::Size`] for a rotary
    /// table that does not fit, [`Error::Missing`] for queries without one, [`Error::Unexpected`] for
    /// a layout of something else.
    pub fn validate(&self) -> Result<(), Error> {
        if let Some(operand) = self.misplaced {
            return Err(Error::Unexpected { operand });
        }
        self.cache.validate()?;
        if let Some(rotary) = &self.rotary {
            rotary.validate(&self.cache)?;
        } else if self.q_heads.is_some() {
            return Err(Error::Missing { operand: Operand::Rotary });
        }
        self.rows().validate().map_err(|error| renamed(error, Operand::Q, Operand::K))?;
        let queries = self.turned().map_or(Ok(()), |queries| queries.validate());
        queries.map_err(|error| renamed(error, Operand::O, Operand::Rotated))
    }

    /// Elements an operand's buffer must have, its layout's offset included.
    pub fn elements(&self, operand: Operand) -> u64 {
        match (operand, self.turned()) {
            (Operand::K | Operand::V, _) => self.rows().elements(operand),
            (Operand::Q, Some(queries)) => queries.elements(Operand::Q),
            (Operand::Rotated, Some(queries)) => queries.elements(Operand::O),
            (Operand::Rotary, _) => self.rotary.map_or(0, |rotary| rotary.elements()),
            _ => 0,
        }
    }

    /// Bytes an operand's buffer must have, whole words.
    pub fn bytes(&self, operand: Operand) -> u64 {
        let element = if operand == Operand::Rotary { Element::F32 } else { self.element };
        let bytes = self.elements(operand).saturating_mul(element.bytes().into());
        bytes.div_ceil(4).saturating_mul(4)
    }

    /// K and V as a problem's.
    pub(crate) fn rows(&self) -> Problem {
        let problem = self.problem(self.cache.kv_heads, self.cache.value_dim);
        let [k, v, ..] = self.layouts;
        with(with(problem, Operand::K, k), Operand::V, v)
    }

    /// Queries and what they turn into, as a problem's Q and O.
    pub(crate) fn turned(&self) -> Option<Problem> {
        let problem = self.problem(self.q_heads?, self.cache.head_dim);
        let [.., q, rotated] = self.layouts;
        Some(with(with(problem, Operand::Q, q), Operand::O, rotated))
    }

    fn problem(&self, q_heads: u32, value_dim: u32) -> Problem {
        let CacheShape { sequences: batch, kv_heads, head_dim, .. } = self.cache;
        let (q_len, kv_len) = (self.tokens, self.tokens);
        let shape = Shape { batch, q_heads, kv_heads, q_len, kv_len, head_dim, value_dim };
        let problem = Problem::new(shape).element(Group::Queries, self.element);
        problem.element(Group::Keys, self.element)
    }

    fn operands(&self) -> Vec<Operand> {
        let all = [Operand::K, Operand::V, Operand::Q, Operand::Rotated, Operand::Rotary];
        let has = |operand: &Operand| match operand {
            Operand::Q | Operand::Rotated => self.q_heads.is_some(),
            Operand::Rotary => self.rotary.is_some(),
            _ => true,
        };
        all.into_iter().filter(has).collect()
    }

    /// The byte at which an operand's binding begins.
    fn first_bound(&self, operand: Operand, limits: &wgpu::Limits) -> u64 {
        let at = LAID_OUT.iter().position(|&o| o == operand);
        let offset = at.and_then(|at| self.layouts[at]).map_or(0, |layout| layout.offset);
        first_bound(u64::from(offset) * u64::from(self.element.bytes()), limits)
    }
}

fn with(problem: Problem, operand: Operand, layout: Option<Layout>) -> Problem {
    match layout {
        Some(layout) => problem.layout(operand, layout),
        None => problem,
    }
}

/// An error of a problem that stands for a part of an append, with the operand's name here.
fn renamed(error: Error, from: Operand, to: Operand) -> Error {
    match error {
        Error::Stride { operand, need, got } if operand == from => {
            Error::Stride { operand: to, need, got }
        }
        Error::Element { operand, need, got } if operand == from => {
            Error::Element { operand: to, need, got }
        }
        other => other,
    }
}
