//! The device memory of a cache.

use super::CacheShape;
use super::pages::Writes;
use crate::buffers::{Bindable, uniform_buffer};
use crate::kernel::Slot;
use crate::plan::check_binding;
use crate::scope::{Now, Scope};
use crate::texture::{self, TEXEL_BYTES};
use crate::{Attention, Error};

/// Rows, tables, and what tells where they are.
#[derive(Debug)]
pub(super) struct Memory {
    pool: Pool,
    pub words: wgpu::Buffer,
    uniform: wgpu::Buffer,
    /// Pages on their way, if there are pages.
    copies: Option<wgpu::Buffer>,
}

/// Where the rows are.
#[derive(Debug)]
enum Pool {
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

impl CacheShape {
    /// Pool, tables and page copies against the device's limits.
    pub(crate) fn check_memory(&self, attention: &Attention) -> Result<(), Error> {
        let limits = attention.limits();
        let [.., end] = self.word_starts();
        check_binding("tables of the cache", 4 * end, limits)?;
        if self.paging.is_some() {
            check_binding("page copies of the cache", self.copied_bytes(), limits)?;
        }
        match self.in_texture(attention) {
            true => texture::check(self.texels(), limits),
            false => check_binding("cache", u64::from(TEXEL_BYTES) * self.texels(), limits),
        }
    }

    /// Bytes of pages on their way: one of each sequence.
    fn copied_bytes(&self) -> u64 {
        u64::from(TEXEL_BYTES) * self.page_texels() * u64::from(self.sequences)
    }
}

impl Memory {
    /// Checked against the device's limits; the tables hold `initial`.
    pub fn new(
        attention: &Attention,
        shape: &CacheShape,
        initial: &Writes,
    ) -> Result<Memory, Error> {
        let device = attention.device();
        shape.check_memory(attention)?;
        let in_texture = shape.in_texture(attention);
        let texels = shape.texels();
        let [counts, limits_at, copies_at, table, scales, end] = shape.word_starts();
        let page_bytes = shape.copied_bytes();
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
        let (empty, copied) = (wgpu::BufferUsages::empty(), wgpu::BufferUsages::COPY_DST);
        Now.run(device, || {
            let pool = if in_texture {
                Pool::Texture(texture::create(device, "wgpu-attention cache", texels))
            } else {
                let size = u64::from(TEXEL_BYTES) * texels;
                Pool::Buffer(buffer(Some("wgpu-attention cache"), size, empty))
            };
            let words = device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("wgpu-attention cache tables"),
                size: 4 * end,
                usage: wgpu::BufferUsages::STORAGE | copied | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: true,
            });
            let refused = |error: wgpu::MapRangeError| Error::Device(error.to_string());
            let mut bytes = words.get_mapped_range_mut(..).map_err(refused)?;
            for (at, values) in initial {
                let at = 4 * *at as usize;
                let values: &[u8] = bytemuck::cast_slice(values);
                bytes.slice(at..at + values.len()).copy_from_slice(values);
            }
            drop(bytes);
            words.unmap();
            let copies = shape
                .paging
                .map(|_| buffer(Some("wgpu-attention cache copies"), page_bytes, empty));
            let uniform = uniform_buffer(device, bytemuck::bytes_of(&uniform))?;
            Ok(Memory { pool, words, uniform, copies })
        })?
    }

    /// Where pages lie on their way; `None` without pages.
    pub fn copies(&self) -> Option<Bindable<'_>> {
        self.copies.as_ref().map(Bindable::whole)
    }

    pub fn bytes(&self, shape: &CacheShape) -> u64 {
        let pool = match &self.pool {
            Pool::Buffer(buffer) => buffer.size(),
            Pool::Texture(_) => texture::bytes(shape.texels()),
        };
        let copies = self.copies.as_ref().map_or(0, wgpu::Buffer::size);
        pool + self.words.size() + self.uniform.size() + copies
    }

    pub const fn in_texture(&self) -> bool {
        matches!(self.pool, Pool::Texture(_))
    }

    /// What a slot of the cache's own is bound to.
    pub fn bindable(&self, slot: Slot) -> Option<Bindable<'_>> {
        let whole = Bindable::whole;
        match (slot, &self.pool) {
            (Slot::Cache, _) => Some(whole(&self.uniform)),
            (Slot::Words | Slot::WordsOut, _) => Some(whole(&self.words)),
            (Slot::Pool | Slot::PoolOut, Pool::Buffer(buffer)) => Some(whole(buffer)),
            (Slot::PoolTexture | Slot::PoolTextureOut, Pool::Texture(view)) => {
                Some(Bindable::Texture(view))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_equals_the_shader() {
        let wgsl = include_str!("../../shaders/cache/cache.wgsl");
        let words = include_str!("../../shaders/cache/words_read.wgsl");
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
