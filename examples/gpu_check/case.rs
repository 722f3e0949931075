//! What is measured: attention of one size, how much work that is, and in which order.

use wgpu_attention::{Align, CacheShape, Element, Group, Problem, Shape};

/// One size of attention. A single row over a cache: decode. As many rows as keys: prefill.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    pub batch: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub rows: u32,
    pub keys: u32,
    pub dim: u32,
    /// Of all operands.
    pub element: Element,
    pub causal: bool,
}

/// The d_model of prefill: 32 heads of 64 or 16 of 128, as others measure.
const WIDTH: u32 = 2048;
/// A software adapter's.
const SMALL_WIDTH: u32 = 256;

impl Case {
    fn prefill(width: u32, tokens: u32, dim: u32) -> Case {
        let heads = width / dim;
        let [batch, kv_heads, rows, keys] = [1, heads, tokens, tokens];
        Case { batch, heads, kv_heads, rows, keys, dim, element: Element::F32, causal: false }
    }

    fn decode(batch: u32, keys: u32, dim: u32) -> Case {
        let [heads, kv_heads] = [32, 8];
        Case { batch, heads, kv_heads, rows: 1, keys, dim, element: Element::F16, causal: false }
    }

    pub fn is_decode(&self) -> bool {
        self.rows == 1
    }

    pub fn shape(&self) -> Shape {
        let shape = Shape::self_attention(self.batch, self.heads, self.rows, self.dim);
        shape.kv_heads(self.kv_heads).kv_len(self.keys)
    }

    pub fn problem(&self) -> Problem {
        if self.is_decode() {
            let problem = self.cache().problem(self.heads, self.rows);
            return problem.element(Group::Queries, self.element);
        }
        let problem = Problem::new(self.shape()).align(Align::TopLeft);
        let problem = problem.element(Group::Queries, self.element);
        let problem = problem.element(Group::Keys, self.element);
        if self.causal { problem.causal() } else { problem }
    }

    pub fn cache(&self) -> CacheShape {
        let shape = CacheShape::new(self.batch, self.kv_heads, self.keys, self.dim);
        shape.element(self.element)
    }

    /// Floating-point operations: two a multiply-add, two multiply-adds a dim and score not hidden.
    pub fn operations(&self) -> f64 {
        let [rows, keys] = [self.rows, self.keys].map(f64::from);
        let scores = if self.causal { rows * (rows + 1.0) / 2.0 } else { rows * keys };
        4.0 * f64::from(self.batch * self.heads * self.dim) * scores
    }

    /// Bytes of the keys and values.
    pub fn bytes(&self) -> f64 {
        let rows = f64::from(self.batch * self.kv_heads) * f64::from(self.keys);
        2.0 * rows * f64::from(self.dim) * f64::from(self.element.bytes())
    }

    /// Sizes in words.
    pub fn name(&self) -> String {
        let Case { batch, heads, kv_heads, keys, dim, .. } = self;
        let hidden = if self.causal { ", causal" } else { "" };
        let element = format!("{:?}", self.element).to_lowercase();
        if self.is_decode() {
            format!("decode, {batch} x {heads}:{kv_heads} heads of {dim}, {keys} keys, {element}")
        } else {
            format!("{keys} tokens, {heads} heads of {dim}, {element}{hidden}")
        }
    }

    /// Where it stands in a table.
    pub fn place(&self) -> (bool, u32, bool, bool, u32, u32) {
        let halves = self.element == Element::F16;
        (self.is_decode(), self.dim, halves, self.causal, self.batch, self.keys)
    }
}

/// Every case, what matters most first: the run may end before all had their turn. But first a short
/// one, which tells how long others may take.
pub fn by_importance(small: bool) -> Vec<Case> {
    let (width, lengths, caches): (_, &[u32], &[[u32; 2]]) = if small {
        (SMALL_WIDTH, &[128, 256], &[[1, 1024]])
    } else {
        (
            WIDTH,
            &[512, 2048, 8192, 1024, 4096, 16_384],
            &[[1, 16_384], [8, 4096], [1, 4096], [8, 16_384]],
        )
    };
    let mut cases = Vec::new();
    for (at, &tokens) in lengths.iter().enumerate() {
        for dim in [128, 64] {
            for element in [Element::F16, Element::F32] {
                for causal in [true, false] {
                    cases.push(Case { element, causal, ..Case::prefill(width, tokens, dim) });
                }
            }
        }
        // Decode comes as early as one can tell whether all is well.
        let caches = if at == 0 { caches } else { &[] };
        for &[batch, keys] in caches {
            for element in [Element::F16, Element::F32] {
                cases.push(Case { element, ..Case::decode(batch, keys, 128) });
            }
        }
    }
    cases
}
