//! The cache on a device, and what the host knows of it.

use super::CacheShape;
use super::memory::Memory;
use super::pages::Pages;
use crate::buffers::Bindable;
use crate::kernel::Slot;
use crate::{Attention, Error, Operand};

/// Keys and values of many sequences, kept on a device in any storage type, contiguous or in pages.
///
/// An [`AppendPlan`](crate::AppendPlan) writes new rows at the end of each sequence, and a plan for a
/// [`Problem::cached`](crate::Problem::cached) problem attends over what is there, both bound once
/// and recorded into the caller's pass as often as wanted: lengths and page tables are on the device.
/// Before each append, [`KvCache::extend`] makes room and says how many tokens it adds.
///
/// What the host changes here (lengths, pages) takes effect with the next submit: submit what was
/// recorded before a change first, except that appends of the same counts may follow one another in
/// one submit. Queues must be the device's own: wgpu panics over another's.
#[derive(Debug)]
pub struct KvCache {
    shape: CacheShape,
    pages: Pages,
    memory: Memory,
}

impl KvCache {
    /// An empty cache on the device of `attention`.
    ///
    /// # Errors
    /// What [`CacheShape::validate`] finds; [`Error::Limit`]; [`Error::Device`] if memory runs out.
    pub fn new(attention: &Attention, shape: CacheShape) -> Result<KvCache, Error> {
        shape.validate()?;
        let pages = Pages::new(shape);
        let memory = Memory::new(attention, &shape, &pages.initial())?;
        Ok(KvCache { shape, pages, memory })
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
        self.memory.bytes(&self.shape)
    }

    /// True if rows are kept in a texture.
    pub const fn in_texture(&self) -> bool {
        self.memory.in_texture()
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
        &self.memory.words
    }

    fn write(&self, queue: &wgpu::Queue, writes: &[(u64, Vec<u32>)]) {
        for (at, values) in writes {
            queue.write_buffer(&self.memory.words, 4 * at, bytemuck::cast_slice(values));
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
        self.memory.bindable(slot)
    }

    /// Where pages lie on their way; not the caller's scratch.
    pub(crate) fn copies(&self) -> Option<Bindable<'_>> {
        self.memory.copies()
    }
}
