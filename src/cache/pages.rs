//! Who has which page, and how long each sequence is, as the host knows it. No device.

#[cfg(test)]
mod tests;

use crate::{CacheShape, Error};

/// Words to be written, by their first index.
pub(super) type Writes = Vec<(u64, Vec<u32>)>;

/// `NO_PAGE` of cache.wgsl.
pub(super) const NO_PAGE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct Pages {
    shape: CacheShape,
    pub lens: Vec<u32>,
    /// What the next append adds, as the device was told.
    counts: Vec<u32>,
    /// Each sequence's pages, in order.
    pub tables: Vec<Vec<u32>>,
    /// How many sequences have a page.
    uses: Vec<u32>,
    /// Pages of no sequence, the next one last.
    free: Vec<u32>,
    /// Where each sequence's last page copy goes, which may be still to come.
    copied_to: Vec<u32>,
}

/// What growing a sequence takes.
#[derive(Default)]
struct Growth {
    /// The place in its table of a page to copy before it is written.
    copy: Option<usize>,
    /// Places of pages that others have and that hold nothing of the sequence's own.
    replaced: Vec<usize>,
    fresh: usize,
}

impl Growth {
    fn pages(&self) -> usize {
        self.fresh + self.replaced.len() + usize::from(self.copy.is_some())
    }
}

impl Pages {
    pub fn new(shape: CacheShape) -> Pages {
        let sequences = shape.sequences as usize;
        let pages = if shape.paging.is_some() { shape.pages() } else { 0 };
        Pages {
            shape,
            lens: vec![0; sequences],
            counts: vec![0; sequences],
            tables: vec![Vec::new(); sequences],
            uses: vec![0; pages as usize],
            free: (0..pages).rev().collect(),
            copied_to: vec![NO_PAGE; sequences],
        }
    }

    /// What the device's words hold before anything is written.
    pub fn initial(&self) -> Writes {
        let [_, limits, copies, ..] = self.shape.word_starts();
        let sequences = self.shape.sequences as usize;
        let limit = if self.shape.paging.is_some() { 0 } else { self.shape.capacity };
        vec![(limits, vec![limit; sequences]), (copies, vec![NO_PAGE; 2 * sequences])]
    }

    pub fn free_pages(&self) -> u32 {
        self.free.len() as u32
    }

    pub fn check_sequence(&self, sequence: u32) -> Result<usize, Error> {
        let need = "a sequence of the cache";
        match sequence < self.shape.sequences {
            true => Ok(sequence as usize),
            false => Err(Error::Size { what: "sequence", need, got: sequence.into() }),
        }
    }

    /// Room for `counts` more tokens each, which the next append adds.
    pub fn extend(&mut self, counts: &[u32]) -> Result<Writes, Error> {
        if counts.len() != self.lens.len() {
            let (need, got) = (self.lens.len() as u64, counts.len() as u64);
            return Err(Error::Length { operand: crate::Operand::Cache, need, got });
        }
        let (mut growths, mut left) = (Vec::new(), Vec::new());
        for (sequence, &count) in counts.iter().enumerate() {
            growths.push(self.growth(sequence, count, &mut left)?);
        }
        let mut writes = self.grow(growths)?;
        for (len, count) in self.lens.iter_mut().zip(counts) {
            *len += count;
        }
        if self.counts != counts {
            self.counts = counts.to_vec();
            writes.push((self.shape.word_starts()[0], counts.to_vec()));
        }
        Ok(writes)
    }

    /// Pages for `tokens` in all, without making the sequence longer.
    pub fn reserve(&mut self, sequence: u32, tokens: u32) -> Result<Writes, Error> {
        let at = self.check_sequence(sequence)?;
        let count = tokens.saturating_sub(self.lens[at]);
        let mut growths: Vec<_> = self.lens.iter().map(|_| Growth::default()).collect();
        growths[at] = self.growth(at, count, &mut Vec::new())?;
        self.grow(growths)
    }

    /// `left` has the pages that sequences before this one leave to those they share them with: the
    /// last one keeps the page.
    fn growth(&self, sequence: usize, count: u32, left: &mut Vec<u32>) -> Result<Growth, Error> {
        let (len, capacity) = (self.lens[sequence], self.shape.capacity);
        let tokens = u64::from(len) + u64::from(count);
        if tokens > capacity.into() {
            let (what, got) = ("tokens of a sequence", capacity.into());
            return Err(Error::Full { what, need: tokens, got });
        }
        if self.shape.paging.is_none() || count == 0 {
            return Ok(Growth::default());
        }
        let page_tokens = self.shape.page_tokens();
        let (table, begun) = (&self.tables[sequence], (len / page_tokens) as usize);
        let pages = tokens.div_ceil(page_tokens.into()) as usize;
        let mut growth = Growth { fresh: pages.saturating_sub(table.len()), ..Growth::default() };
        for (place, &page) in table.iter().enumerate().take(pages).skip(begun) {
            let leavers = left.iter().filter(|&&other| other == page).count();
            if self.uses[page as usize] as usize - leavers > 1 {
                left.push(page);
                match place == begun && !len.is_multiple_of(page_tokens) {
                    true => growth.copy = Some(place),
                    false => growth.replaced.push(place),
                }
            }
        }
        Ok(growth)
    }

    /// All or nothing.
    fn grow(&mut self, growths: Vec<Growth>) -> Result<Writes, Error> {
        let need: usize = growths.iter().map(Growth::pages).sum();
        if need > self.free.len() {
            let (need, got) = (need as u64, self.free.len() as u64);
            return Err(Error::Full { what: "pages", need, got });
        }
        let mut writes = Vec::new();
        for (sequence, growth) in growths.into_iter().enumerate() {
            if growth.pages() == 0 {
                continue;
            }
            if let Some(place) = growth.copy {
                let from = self.tables[sequence][place];
                let to = self.replace(sequence, place);
                self.copied_to[sequence] = to;
                writes.push((self.copy_word(sequence), vec![from, to]));
            }
            for place in growth.replaced {
                self.replace(sequence, place);
            }
            for _ in 0..growth.fresh {
                let page = self.take();
                self.tables[sequence].push(page);
            }
            writes.extend(self.table_writes(sequence));
        }
        Ok(writes)
    }

    /// A page of its own instead of one that others have, too.
    fn replace(&mut self, sequence: usize, place: usize) -> u32 {
        let page = self.take();
        let shared = std::mem::replace(&mut self.tables[sequence][place], page);
        self.drop_page(shared);
        page
    }

    fn copy_word(&self, sequence: usize) -> u64 {
        self.shape.word_starts()[2] + 2 * sequence as u64
    }

    fn take(&mut self) -> u32 {
        // `grow` has counted them.
        let page = self.free.pop().unwrap_or_default();
        self.uses[page as usize] = 1;
        page
    }

    fn drop_page(&mut self, page: u32) {
        let uses = &mut self.uses[page as usize];
        *uses -= 1;
        if *uses == 0 {
            self.free.push(page);
        }
    }

    /// Tokens that a sequence has pages for.
    pub fn limit(&self, sequence: usize) -> u32 {
        if self.shape.paging.is_none() {
            return self.shape.capacity;
        }
        let tokens = self.tables[sequence].len() as u64 * u64::from(self.shape.page_tokens());
        tokens.min(self.shape.capacity.into()) as u32
    }

    fn table_writes(&self, sequence: usize) -> Writes {
        let [_, limits, _, table, ..] = self.shape.word_starts();
        let at = table + sequence as u64 * u64::from(self.shape.table_pages());
        let mut writes = vec![(limits + sequence as u64, vec![self.limit(sequence)])];
        if !self.tables[sequence].is_empty() {
            writes.push((at, self.tables[sequence].clone()));
        }
        writes
    }

    /// Another length, within the pages; pages past it are free again.
    pub fn set_len(&mut self, sequence: u32, len: u32) -> Result<Writes, Error> {
        let at = self.check_sequence(sequence)?;
        if len > self.limit(at) {
            let need = "at most the tokens that have pages";
            return Err(Error::Size { what: "length", need, got: len.into() });
        }
        self.lens[at] = len;
        let mut writes = vec![(at as u64, vec![len])];
        if self.shape.paging.is_some() {
            let keep = len.div_ceil(self.shape.page_tokens()) as usize;
            for page in self.tables[at].split_off(keep) {
                self.drop_page(page);
                // Someone else may write there before a copy that is still to come.
                if page == self.copied_to[at] {
                    self.copied_to[at] = NO_PAGE;
                    writes.push((self.copy_word(at), vec![NO_PAGE]));
                }
            }
            writes.extend(self.table_writes(at));
        }
        Ok(writes)
    }

    /// An empty sequence takes over pages, whoever else has them.
    pub fn set_pages(&mut self, sequence: u32, pages: &[u32], len: u32) -> Result<Writes, Error> {
        let at = self.check_sequence(sequence)?;
        let Some(paging) = self.shape.paging else {
            let need = "a paged cache";
            return Err(Error::Size { what: "page_tokens", need, got: 0 });
        };
        let refused = |what, need, got: u64| Err(Error::Size { what, need, got: got.into() });
        if !self.tables[at].is_empty() {
            return refused("pages of the sequence", "none yet", self.tables[at].len() as u64);
        }
        if pages.len() > self.shape.table_pages() as usize {
            return refused("pages", "at most the capacity's", pages.len() as u64);
        }
        if let Some(&page) = pages.iter().find(|&&page| page >= paging.pages) {
            return refused("page", "a page of the cache", page.into());
        }
        let mut sorted = pages.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return refused("page", "each page once", pair[0].into());
        }
        let room =
            (pages.len() as u64 * u64::from(paging.page_tokens)).min(self.shape.capacity.into());
        if u64::from(len) > room {
            return refused("length", "at most the tokens that have pages", len.into());
        }
        for &page in pages {
            self.uses[page as usize] += 1;
        }
        let uses = &self.uses;
        self.free.retain(|&page| uses[page as usize] == 0);
        self.tables[at] = pages.to_vec();
        self.lens[at] = len;
        let mut writes = vec![(at as u64, vec![len])];
        writes.extend(self.table_writes(at));
        Ok(writes)
    }
}
