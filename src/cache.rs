//! A cache of keys and values that stays on the device: its shape.

mod append;
mod memory;
mod pages;
mod store;
mod unpack;

pub use append::{Append, AppendBound, AppendPlan};
pub use store::KvCache;
pub use unpack::{Unpack, UnpackBound};

use crate::texture::{self, TEXEL_BYTES};
use crate::{Attention, Element, Error, Problem, Shape};

/// Where a cache keeps its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Pool {
    /// What suits the adapter: a texture where Mesa's llvmpipe runs the shaders and a texture is
    /// large enough, else a buffer.
    #[default]
    Auto,
    /// A storage buffer.
    Buffer,
    /// A storage texture.
    Texture,
}

/// Pages of a paged cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Paging {
    /// Tokens of a page.
    pub page_tokens: u32,
    /// Pages that all sequences share out among them.
    pub pages: u32,
}

/// Sizes of a [`KvCache`]: K `[sequence, kv_head, token, head_dim]`, V likewise.
///
/// ```
/// use wgpu_attention::{CacheShape, Element};
/// // 16 sequences of up to 4,096 tokens over 8 kv heads of 64, in 1,024 pages of 16 tokens.
/// let cache = CacheShape::new(16, 8, 4096, 64).element(Element::Int8).paged(16, 1024);
/// assert_eq!(cache.bytes(), 8 * 16 * 1024 * 2 * (64 + 4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[must_use]
pub struct CacheShape {
    /// Sequences, each with a length of its own.
    pub sequences: u32,
    /// Heads of K and V.
    pub kv_heads: u32,
    /// Most tokens of a sequence.
    pub capacity: u32,
    /// Elements of a row of K.
    pub head_dim: u32,
    /// Elements of a row of V.
    pub value_dim: u32,
    /// How rows are stored. [`Element::Int8`]: with one f32 scale a row, its largest element / 127.
    pub element: Element,
    /// `None`: each sequence has room for its capacity, one after another.
    pub paging: Option<Paging>,
    /// Where rows are kept.
    pub pool: Pool,
}

impl CacheShape {
    /// Contiguous f32, value_dim equal to head_dim.
    pub const fn new(sequences: u32, kv_heads: u32, capacity: u32, head_dim: u32) -> CacheShape {
        CacheShape {
            sequences,
            kv_heads,
            capacity,
            head_dim,
            value_dim: head_dim,
            element: Element::F32,
            paging: None,
            pool: Pool::Auto,
        }
    }

    /// The same with another row length of V.
    pub const fn value_dim(self, value_dim: u32) -> CacheShape {
        CacheShape { value_dim, ..self }
    }

    /// The same with rows stored so.
    pub const fn element(self, element: Element) -> CacheShape {
        CacheShape { element, ..self }
    }

    /// The same in so many pages of so many tokens, given to sequences as they grow.
    pub const fn paged(self, page_tokens: u32, pages: u32) -> CacheShape {
        CacheShape { paging: Some(Paging { page_tokens, pages }), ..self }
    }

    /// The same with rows kept there.
    pub const fn pool(self, pool: Pool) -> CacheShape {
        CacheShape { pool, ..self }
    }

    /// Attention of `q_len` new tokens a sequence, which were appended already, to all that it
    /// holds: causal, the last query at the last key.
    pub fn problem(self, q_heads: u32, q_len: u32) -> Problem {
        let shape = Shape {
            batch: self.sequences,
            q_heads,
            kv_heads: self.kv_heads,
            q_len,
            kv_len: self.capacity,
            head_dim: self.head_dim,
            value_dim: self.value_dim,
        };
        Problem::new(shape).cached(self).causal().align(crate::Align::BottomRight)
    }

    /// Bytes of rows and scales that the pool holds, without its tables.
    pub fn bytes(&self) -> u64 {
        let scales = if self.element == Element::Int8 { 8 } else { 0 };
        let texels = u64::from(self.k_texels()) + u64::from(self.v_texels());
        self.rows().saturating_mul(texels * u64::from(TEXEL_BYTES) + scales)
    }

    /// Checks every rule that needs no device.
    ///
    /// # Errors
    /// [`Error::Size`].
    pub fn validate(&self) -> Result<(), Error> {
        let paging = self.paging.unwrap_or(Paging { page_tokens: 1, pages: 1 });
        let sizes = [
            ("sequences", self.sequences),
            ("kv_heads", self.kv_heads),
            ("capacity", self.capacity),
            ("head_dim", self.head_dim),
            ("value_dim", self.value_dim),
            ("page_tokens", paging.page_tokens),
            ("pages", paging.pages),
        ];
        for (what, got) in sizes {
            if got == 0 || got > 1 << 30 {
                let need = "from 1 to 2^30";
                return Err(Error::Size { what, need, got: got.into() });
            }
        }
        let texels = u128::from(self.rows()) * u128::from(self.k_texels() + self.v_texels());
        let words = u128::from(self.words());
        // Numbers of texels and words must fit u32 with room for one step too many.
        for (what, got) in [("texels of the cache", texels), ("words of the cache", words)] {
            if got >= 1 << 31 {
                return Err(Error::Size { what, need: "below 2^31", got });
            }
        }
        Ok(())
    }

    pub(crate) fn page_tokens(&self) -> u32 {
        self.paging.map_or(self.capacity, |paging| paging.page_tokens)
    }

    pub(crate) fn pages(&self) -> u32 {
        self.paging.map_or(self.sequences, |paging| paging.pages)
    }

    /// Pages of one sequence at most; no table without paging.
    pub(crate) fn table_pages(&self) -> u32 {
        self.paging.map_or(0, |paging| self.capacity.div_ceil(paging.page_tokens))
    }

    /// Rows of K in all pages.
    pub(crate) fn rows(&self) -> u64 {
        let page = u64::from(self.kv_heads) * u64::from(self.page_tokens());
        page.saturating_mul(self.pages().into())
    }

    pub(crate) fn k_texels(&self) -> u32 {
        texels(self.head_dim, self.element)
    }

    pub(crate) fn v_texels(&self) -> u32 {
        texels(self.value_dim, self.element)
    }

    pub(crate) fn texels(&self) -> u64 {
        self.rows() * u64::from(self.k_texels() + self.v_texels())
    }

    /// Texels of one page.
    pub(crate) fn page_texels(&self) -> u64 {
        self.texels() / u64::from(self.pages())
    }

    /// First words of: counts, limits, copies, page table, scales; and their end. Lengths are first.
    pub(crate) fn word_starts(&self) -> [u64; 6] {
        let sequences = u64::from(self.sequences);
        let table = sequences * u64::from(self.table_pages());
        let scales = if self.element == Element::Int8 { self.rows().saturating_mul(2) } else { 0 };
        let scales_at = 5 * sequences + table;
        let end = scales_at.saturating_add(scales);
        [sequences, 2 * sequences, 3 * sequences, 5 * sequences, scales_at, end]
    }

    fn words(&self) -> u64 {
        self.word_starts()[5]
    }

    /// Whether the pool is a texture on this device.
    pub(crate) fn in_texture(&self, attention: &Attention) -> bool {
        match self.pool {
            Pool::Buffer => false,
            Pool::Texture => true,
            Pool::Auto => {
                attention.prefers_textures()
                    && texture::check(self.texels(), attention.limits()).is_ok()
            }
        }
    }
}

fn texels(dim: u32, element: Element) -> u32 {
    dim.div_ceil(TEXEL_BYTES / element.bytes())
}
