//! The cache on a device, and what the host knows of it.

use super::pages::Pages;
use super::{CacheShape, POOL_WIDTH, TEXEL_BYTES};
use crate::buffers::{Bindable, Range, uniform_buffer};
use crate::kernel::Slot;
use crate::plan::check_binding;
use crate::scope::{Now, Scope};
use crate::{Attention, Error, Operand};

/// One texel: four f32, eight 16-bit numbers or sixteen bytes.
pub(crate) const POOL_FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba32Uint;

/// Keys and values of many sequences, kept on a device in any storage type, contiguous or in pages.
///
/// An [`AppendPlan`](crate::AppendPlan) writes new rows at the end of each sequence, and a plan for a
/// [`Problem::cached`](crate::Problem::cached) problem attends over what is there, both bound once
/// and recorded into the caller's pass as often as wanted: lengths and page tables are on the device.
/// Before each append, [`KvCache::extend`] makes room and says how many tokens it adds.
///
/// What the host changes here (lengths, pages) takes effect with the next submit: submit what was
/// recorded before a change first, except that appends of the same counts may follow one another in
/// one submit.
#[derive(Debug)]
pub struct KvCache {
    shape: CacheShape,
    pages: Pages,
    pool: Memory,
    words: wgpu::Buffer,
    uniform: wgpu::Buffer,
    /// Pages on their way, if there are pages.
    copies: Option<wgpu::Buffer>,
}

#[derive(Debug)]
enum Memory {
    Buffer(wgpu::Buffer),
    Texture(wgpu::TextureView),
}

/// `Cache` of cache.wgsl.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
struct CacheUniform {
    sequences: u32,
    kv_heads: u32,
    page_tokens: u32,
    pages: u32,
    table_pages: u32,
    first_v: u32,
    counts: u32,
    limits: u32,
    copies: u32,
    table: u32,
    scales: u32,
    rows: u32,
    capacity: u32,
}

impl KvCache {
    /// An empty cache on the device of `attention`.
    ///
    /// # Errors
    /// What [`CacheShape::validate`] finds; [`Error::Limit`]; [`Error::Device`] if memory runs out.
    pub fn new(attention: &Attention, shape: CacheShape) -> Result<KvCache, Error> {
        shape.validate()?;
        let (device, limits) = (attention.device(), attention.limits());
        let texture = shape.in_texture(attention);
        let texels = shape.texels();
        let [counts, limits_at, copies_at, table, scales, end] = shape.word_starts();
        check_binding("tables of the cache", 4 * end, limits)?;
        let page_bytes = u64::from(TEXEL_BYTES) * shape.page_texels() * u64::from(shape.sequences);
        if shape.paging.is_some() {
            check_binding("page copies of the cache", page_bytes, limits)?;
        }
        let side = limits.max_texture_dimension_2d;
        let height = texels.div_ceil(POOL_WIDTH.into());
        if texture {
            let got = side.into();
            for need in [POOL_WIDTH.into(), height] {
                if need > got {
                    return Err(Error::Limit { what: "max_texture_dimension_2d", need, got });
                }
            }
        } else {
            check_binding("cache", u64::from(TEXEL_BYTES) * texels, limits)?;
        }
        let buffer = |label, size, usage| {
            let usage = wgpu::BufferUsages::STORAGE | usage;
            let descriptor =
                wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false };
            device.create_buffer(&descriptor)
        };
        let uniform = CacheUniform {
            sequences: shape.sequences,
            kv_heads: shape.kv_heads,
            page_tokens: shape.page_tokens(),
            pages: shape.pages(),
            table_pages: shape.table_pages(),
            first_v: (shape.rows() * u64::from(shape.k_texels())) as u32,
            counts: counts as u32,
            limits: limits_at as u32,
            copies: copies_at as u32,
            table: table as u32,
            scales: scales as u32,
            rows: shape.rows() as u32,
            capacity: shape.capacity,
        };
        let pages = Pages::new(shape);
        let (empty, copied) = (wgpu::BufferUsages::empty(), wgpu::BufferUsages::COPY_DST);
        Now.run(device, || {
            let pool = if texture {
                let extent = wgpu::Extent3d {
                    width: POOL_WIDTH,
                    height: height as u32,
                    depth_or_array_layers: 1,
                };
                let texture = device.create_texture(&wgpu::TextureDescriptor {
                    label: Some("wgpu-attention cache"),
                    size: extent,
                    mip_level_count: 1,
                    sample_count: 1,
                    dimension: wgpu::TextureDimension::D2,
                    format: POOL_FORMAT,
                    usage: wgpu::TextureUsages::STORAGE_BINDING,
                    view_formats: &[],
                });
                Memory::Texture(texture.create_view(&wgpu::TextureViewDescriptor::default()))
            } else {
                let size = u64::from(TEXEL_BYTES) * texels;
                Memory::Buffer(buffer(Some("wgpu-attention cache"), size, empty))
            };
            let words = device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("wgpu-attention cache tables"),
                size: 4 * end,
                usage: wgpu::BufferUsages::STORAGE | copied | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: true,
            });
            let refused = |error: wgpu::MapRangeError| Error::Device(error.to_string());
            let mut bytes = words.get_mapped_range_mut(..).map_err(refused)?;
            for (at, values) in pages.initial() {
                let at = 4 * at as usize;
                let values: &[u8] = bytemuck::cast_slice(&values);
                bytes.slice(at..at + values.len()).copy_from_slice(values);
            }
            drop(bytes);
            words.unmap();
            let copies = shape
                .paging
                .map(|_| buffer(Some("wgpu-attention cache copies"), page_bytes, empty));
            let uniform = uniform_buffer(device, bytemuck::bytes_of(&uniform))?;
            Ok(KvCache { shape, pages, pool, words, uniform, copies })
        })?
    }

    /// Its sizes.
    pub const fn shape(&self) -> CacheShape {
        self.shape
    }

    /// How many tokens a sequence has, once all that was recorded is done; as far as the host knows.
    ///
    /// # Errors
    /// [`Error::Size`] if there is no such sequence.
    pub fn len(&self, sequence: u32) -> Result<u32, Error> {
        self.pages.check_sequence(sequence).map(|at| self.pages.lens[at])
    }

    /// True if no sequence has a token.
    pub fn is_empty(&self) -> bool {
        self.pages.lens.iter().all(|&len| len == 0)
    }

    /// Pages of no sequence; 0 for a contiguous cache.
    pub fn free_pages(&self) -> u32 {
        self.pages.free_pages()
    }

    /// The pages of a sequence, in order.
    ///
    /// # Errors
    /// [`Error::Size`] if there is no such sequence.
    pub fn pages(&self, sequence: u32) -> Result<&[u32], Error> {
        self.pages.check_sequence(sequence).map(|at| self.pages.tables[at].as_slice())
    }

    /// Bytes of device memory: pool, tables and page copies.
    pub fn bytes(&self) -> u64 {
        let pool = match &self.pool {
            Memory::Buffer(buffer) => buffer.size(),
            Memory::Texture(_) => {
                let rows = self.shape.texels().div_ceil(POOL_WIDTH.into());
                rows * u64::from(POOL_WIDTH * TEXEL_BYTES)
            }
        };
        let copies = self.copies.as_ref().map_or(0, wgpu::Buffer::size);
        pool + self.words.size() + self.uniform.size() + copies
    }

    /// True if rows are kept in a texture.
    pub const fn in_texture(&self) -> bool {
        matches!(self.pool, Memory::Texture(_))
    }

    /// Makes room for `counts[s]` more tokens of each sequence s and tells the next append to add
    /// them. Writes to the device only what has changed: nothing for a decode step within a page.
    ///
    /// # Errors
    /// [`Error::Full`] if a sequence would pass its capacity or pages run out, [`Error::Length`] for
    /// another number of counts. Nothing has changed then.
    pub fn extend(&mut self, queue: &wgpu::Queue, counts: &[u32]) -> Result<(), Error> {
        let writes = self.pages.extend(counts)?;
        self.write(queue, &writes);
        Ok(())
    }

    /// Pages for `tokens` tokens of a sequence in all, without making it longer: for lengths and
    /// counts that a kernel of the caller's writes, see [`KvCache::words`]. If other sequences share
    /// the page that it has begun, the next append copies it: record one (of no tokens, if there are
    /// none yet) before the sequence is attended to or shared.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Size`] if there is no such sequence. Nothing has changed then.
    pub fn reserve(
        &mut self,
        queue: &wgpu::Queue,
        sequence: u32,
        tokens: u32,
    ) -> Result<(), Error> {
        let writes = self.pages.reserve(sequence, tokens)?;
        self.write(queue, &writes);
        Ok(())
    }

    /// Sets a sequence's length: shorter to take tokens back (speculative decoding) or, with 0, to
    /// free it; longer, within its pages, to take over what the device has counted. Pages past it
    /// are free again, those that other sequences share stay theirs.
    ///
    /// # Errors
    /// [`Error::Size`] past the tokens that have pages, or if there is no such sequence.
    pub fn set_len(&mut self, queue: &wgpu::Queue, sequence: u32, len: u32) -> Result<(), Error> {
        let writes = self.pages.set_len(sequence, len)?;
        self.write(queue, &writes);
        Ok(())
    }

    /// An empty sequence begins with the first `tokens` tokens of another one and shares their
    /// pages. Whichever appends into a page that is shared gets a copy of it first.
    ///
    /// # Errors
    /// [`Error::Size`] if the cache has no pages, the sequence is not empty, or the other has fewer
    /// tokens.
    pub fn share(
        &mut self,
        queue: &wgpu::Queue,
        from: u32,
        to: u32,
        tokens: u32,
    ) -> Result<(), Error> {
        let from = self.pages.check_sequence(from)?;
        if tokens > self.pages.lens[from] {
            let need = "at most the other sequence's";
            return Err(Error::Size { what: "shared tokens", need, got: tokens.into() });
        }
        let pages = tokens.div_ceil(self.shape.page_tokens()) as usize;
        let pages: Vec<u32> = self.pages.tables[from].iter().copied().take(pages).collect();
        self.set_pages(queue, to, &pages, tokens)
    }

    /// An empty sequence takes these pages over, in this order, with `len` tokens in them: for page
    /// tables of the caller's own making. Pages may be shared with other sequences.
    ///
    /// # Errors
    /// [`Error::Size`] for a page that does not exist or comes twice, more pages than the capacity
    /// has, more tokens than the pages, a sequence that has pages, or a cache without.
    pub fn set_pages(
        &mut self,
        queue: &wgpu::Queue,
        sequence: u32,
        pages: &[u32],
        len: u32,
    ) -> Result<(), Error> {
        let writes = self.pages.set_pages(sequence, pages, len)?;
        self.write(queue, &writes);
        Ok(())
    }

    /// The u32 buffer that begins with the sequences' lengths, then has what the next append adds to
    /// each, for kernels of the caller's. Usages STORAGE, COPY_SRC, COPY_DST. Lengths past a
    /// sequence's pages count as that many tokens; the rest of the buffer is the cache's own.
    pub const fn words(&self) -> &wgpu::Buffer {
        &self.words
    }

    fn write(&self, queue: &wgpu::Queue, writes: &[(u64, Vec<u32>)]) {
        for (at, values) in writes {
            queue.write_buffer(&self.words, 4 * at, bytemuck::cast_slice(values));
        }
    }

    pub(crate) fn check_shape(&self, want: &CacheShape) -> Result<(), Error> {
        if *want == self.shape {
            return Ok(());
        }
        let (need, got) = (want.bytes(), self.shape.bytes());
        Err(Error::Length { operand: Operand::Cache, need, got })
    }

    /// What a slot of the cache's own is bound to.
    pub(crate) fn bindable(&self, slot: Slot) -> Option<Bindable<'_>> {
        let whole = |buffer| Bindable::Bytes(Range { buffer, offset: 0, size: buffer.size() });
        match (slot, &self.pool) {
            (Slot::Cache, _) => Some(whole(&self.uniform)),
            (Slot::Words | Slot::WordsOut, _) => Some(whole(&self.words)),
            (Slot::Pool | Slot::PoolOut, Memory::Buffer(buffer)) => Some(whole(buffer)),
            (Slot::PoolTexture | Slot::PoolTextureOut, Memory::Texture(view)) => {
                Some(Bindable::Texture(view))
            }
            _ => None,
        }
    }

    pub(crate) fn copies(&self) -> Option<Bindable<'_>> {
        let whole = |buffer: &wgpu::Buffer| buffer.size();
        let buffer = self.copies.as_ref()?;
        Some(Bindable::Bytes(Range { buffer, offset: 0, size: whole(buffer) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_equals_the_shader() {
        let wgsl = include_str!("../../shaders/cache.wgsl");
        let words = include_str!("../../shaders/words_read.wgsl");
        let (members, size) = crate::uniform::tests::wgsl(&format!("{wgsl}{words}"), "Cache");
        let names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
        let fields = "sequences kv_heads page_tokens pages table_pages first_v counts limits copies \
                      table scales rows capacity";
        assert_eq!(names, fields.split_whitespace().collect::<Vec<_>>());
        assert_eq!(size, size_of::<CacheUniform>() as u32);
        assert_eq!(std::mem::offset_of!(CacheUniform, rows), 44);
        assert_eq!(std::mem::offset_of!(CacheUniform, counts), 24);
    }
}
