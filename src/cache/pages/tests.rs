//! Pages against a device of plain vectors: tables, limits, copies and lengths as the kernels use them.

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{NO_PAGE, Pages, Writes};
use crate::{CacheShape, Error, Operand};

/// What the kernels see: words, and one number a token.
struct Device {
    shape: CacheShape,
    words: Vec<u32>,
    pool: Vec<u32>,
    /// The number that the next token gets.
    next: u32,
}

impl Device {
    fn new(shape: CacheShape, pages: &Pages) -> Device {
        let words = vec![0; shape.word_starts()[5] as usize];
        let pool = vec![u32::MAX; (shape.pages() * shape.page_tokens()) as usize];
        let mut device = Device { shape, words, pool, next: 0 };
        device.write(&pages.initial());
        device
    }

    fn write(&mut self, writes: &Writes) {
        for (at, values) in writes {
            self.words[*at as usize..][..values.len()].copy_from_slice(values);
        }
    }

    fn word(&self, start: usize, at: u32) -> u32 {
        self.words[self.shape.word_starts()[start] as usize + at as usize]
    }

    /// Where a token is.
    fn place(&self, sequence: u32, token: u32) -> usize {
        let page_tokens = self.shape.page_tokens();
        let page = self.word(3, sequence * self.shape.table_pages() + token / page_tokens);
        (page * page_tokens + token % page_tokens) as usize
    }

    /// As page_out, page_in, append and bump; the numbers that each sequence got.
    fn append(&mut self) -> Vec<Vec<u32>> {
        let (before, rows) = (self.pool.clone(), self.shape.page_tokens() as usize);
        let mut written = Vec::new();
        for sequence in 0..self.shape.sequences {
            let [from, to] = [0, 1].map(|at| self.word(2, 2 * sequence + at) as usize);
            if from != NO_PAGE as usize {
                assert!(!written.contains(&to), "two copies into page {to}");
                written.push(to);
                let page = &before[from * rows..][..rows];
                self.pool[to * rows..][..rows].copy_from_slice(page);
            }
        }
        let mut all = Vec::new();
        for sequence in 0..self.shape.sequences {
            let (len, count) = (self.words[sequence as usize], self.word(0, sequence));
            let mut new = Vec::new();
            for token in len..len + count {
                assert!(token < self.word(1, sequence), "past the limit");
                let place = self.place(sequence, token);
                self.pool[place] = self.next;
                new.push(self.next);
                self.next += 1;
            }
            self.words[sequence as usize] = len + count;
            let copies = self.shape.word_starts()[2] as usize;
            self.words[copies + 2 * sequence as usize] = NO_PAGE;
            all.push(new);
        }
        all
    }

    fn read(&self, sequence: u32) -> Vec<u32> {
        let len = self.words[sequence as usize];
        (0..len).map(|token| self.pool[self.place(sequence, token)]).collect()
    }
}

/// Both, with what each sequence must hold.
struct Both {
    pages: Pages,
    device: Device,
    want: Vec<Vec<u32>>,
}

impl Both {
    fn new(shape: CacheShape) -> Both {
        let pages = Pages::new(shape);
        let device = Device::new(shape, &pages);
        Both { pages, device, want: vec![Vec::new(); shape.sequences as usize] }
    }

    fn extend(&mut self, counts: &[u32]) -> Result<(), Error> {
        let writes = self.pages.extend(counts)?;
        self.device.write(&writes);
        for (want, new) in self.want.iter_mut().zip(self.device.append()) {
            want.extend(new);
        }
        self.check();
        Ok(())
    }

    fn reserve(&mut self, sequence: u32, tokens: u32) -> Result<(), Error> {
        let writes = self.pages.reserve(sequence, tokens)?;
        self.device.write(&writes);
        self.conserved();
        Ok(())
    }

    fn set_len(&mut self, sequence: u32, len: u32) -> Result<(), Error> {
        let writes = self.pages.set_len(sequence, len)?;
        self.device.write(&writes);
        self.want[sequence as usize].truncate(len as usize);
        self.conserved();
        Ok(())
    }

    /// A table of the caller's own: another sequence's pages, all of them, of which only so many
    /// tokens count.
    fn set_pages(&mut self, from: u32, to: u32, len: u32) -> Result<(), Error> {
        let table = self.pages.tables[from as usize].clone();
        let writes = self.pages.set_pages(to, &table, len)?;
        self.device.write(&writes);
        self.want[to as usize] = self.want[from as usize][..len as usize].to_vec();
        self.conserved();
        Ok(())
    }

    /// Every page is free or of as many sequences as have it in their tables.
    fn conserved(&self) {
        let pages = &self.pages;
        for page in 0..pages.shape.pages() {
            let uses = pages.tables.iter().flatten().filter(|&&p| p == page).count();
            assert_eq!(pages.uses[page as usize] as usize, uses, "page {page}");
            let free = pages.free.iter().filter(|&&p| p == page).count();
            assert_eq!(free, usize::from(uses == 0), "page {page}");
        }
    }

    fn check(&self) {
        self.conserved();
        for (sequence, want) in (0u32..).zip(&self.want) {
            assert_eq!(&self.device.read(sequence), want, "sequence {sequence}");
            assert_eq!(self.pages.lens[sequence as usize] as usize, want.len());
        }
    }
}

fn shape() -> CacheShape {
    CacheShape::new(3, 1, 12, 1).paged(4, 7)
}

/// Nothing is written for a step within a page; counts only when they change, a table only when it
/// does.
#[test]
fn only_what_has_changed_is_written() {
    let mut pages = Pages::new(shape());
    let [counts, limits, copies, table, ..] = shape().word_starts();
    let one = pages.extend(&[1, 0, 0]).expect("room");
    assert_eq!(one, [(limits, vec![4]), (table, vec![0]), (counts, vec![1, 0, 0])]);
    for _ in 0..3 {
        assert_eq!(pages.extend(&[1, 0, 0]).expect("room"), []);
    }
    let next = pages.extend(&[1, 0, 0]).expect("room");
    assert_eq!(next, [(limits, vec![8]), (table, vec![0, 1])]);
    pages.set_pages(1, &[0, 1], 5).expect("pages");
    let split = pages.extend(&[1, 0, 0]).expect("room");
    assert_eq!(split, [(copies, vec![1, 2]), (limits, vec![8]), (table, vec![0, 2])]);
}

/// The last one to grow keeps a shared page: two sequences need one more page, not two.
#[test]
fn the_last_one_keeps_a_shared_page() {
    let mut both = Both::new(CacheShape::new(2, 1, 4, 1).paged(4, 2));
    both.extend(&[2, 0]).expect("room");
    both.set_pages(0, 1, 2).expect("shared");
    both.extend(&[1, 1]).expect("one page each");
    assert_eq!(both.pages.free_pages(), 0);
}

/// A caller's table may have shared pages past the length; appended rows do not go there.
#[test]
fn shared_pages_past_the_length_are_replaced() {
    let mut both = Both::new(shape());
    both.extend(&[10, 0, 0]).expect("room");
    both.set_pages(0, 1, 3).expect("shared");
    both.extend(&[0, 7, 0]).expect("room");
    assert_eq!(both.pages.free_pages(), 1);
    both.set_pages(0, 2, 4).expect("shared");
    both.extend(&[0, 0, 1]).expect("the next page without a copy");
    assert_eq!(both.pages.free_pages(), 0);
}

/// A copy that never came does not write into a page that has been given away.
#[test]
fn freed_before_its_copy() {
    let mut both = Both::new(shape());
    both.extend(&[2, 0, 0]).expect("room");
    both.set_pages(0, 1, 2).expect("shared");
    both.set_pages(0, 2, 2).expect("shared");
    both.reserve(1, 4).expect("a copy to come");
    both.set_len(1, 0).expect("freed");
    both.extend(&[0, 0, 1]).expect("room");
}

/// 20,000 changes of all kinds, of which many are refused.
#[test]
fn random_walk() {
    for (seed, shape) in [
        (1, shape()),
        (2, CacheShape::new(4, 1, 13, 1).paged(3, 9)),
        (3, CacheShape::new(5, 1, 6, 1).paged(1, 14)),
        (4, CacheShape::new(4, 1, 6, 1).paged(8, 3)),
    ] {
        let (mut random, mut both) = (StdRng::seed_from_u64(seed), Both::new(shape));
        let (mut done, mut refused) = (0, 0);
        for _ in 0..5_000 {
            let [a, b] = [0, 0].map(|_: u32| random.random_range(0..shape.sequences));
            let len = both.pages.lens[a as usize];
            let before = both.pages.clone();
            let result = match random.random_range(0..8) {
                0..4 => {
                    let counts: Vec<_> =
                        (0..shape.sequences).map(|_| random.random_range(0..3)).collect();
                    both.extend(&counts)
                }
                4 => both.set_len(a, random.random_range(0..=len)),
                5 => both.set_len(a, 0),
                6 => both.set_pages(a, b, random.random_range(0..=len)),
                // Its copy is due before pages are shared on: the next append.
                _ => both
                    .reserve(a, random.random_range(0..=shape.capacity + 1))
                    .and_then(|()| match random.random_range(0..2) {
                        0 => both.set_len(a, random.random_range(0..=len)),
                        _ => Ok(()),
                    })
                    .and_then(|()| both.extend(&vec![0; shape.sequences as usize])),
            };
            match result {
                Ok(()) => done += 1,
                Err(_) => {
                    refused += 1;
                    assert_eq!(format!("{before:?}"), format!("{:?}", both.pages));
                }
            }
        }
        assert!(done > 1_000 && refused > 300, "{done} done, {refused} refused");
    }
}

/// Each mistake by value; nothing has changed after it.
#[test]
fn errors() {
    let mut pages = Pages::new(shape());
    pages.extend(&[5, 3, 0]).expect("room");
    let before = format!("{pages:?}");
    let size = |what, need, got: u128| Error::Size { what, need, got };
    let full = |what, need, got| Error::Full { what, need, got };
    let tokens = "at most the tokens that have pages";
    let sequence = size("sequence", "a sequence of the cache", 3);
    let length = Error::Length { operand: Operand::Cache, need: 3, got: 2 };
    for (got, want) in [
        (pages.clone().extend(&[1, 1]), length),
        (pages.clone().extend(&[8, 0, 0]), full("tokens of a sequence", 13, 12)),
        (
            pages.clone().extend(&[0, 0, u32::MAX]),
            full("tokens of a sequence", u32::MAX.into(), 12),
        ),
        (pages.clone().extend(&[7, 9, 5]), full("pages", 5, 4)),
        (pages.reserve(3, 0), sequence.clone()),
        (pages.reserve(0, 13), full("tokens of a sequence", 13, 12)),
        (pages.set_len(3, 0), sequence.clone()),
        (pages.set_len(0, 9), size("length", tokens, 9)),
        (pages.set_len(2, 1), size("length", tokens, 1)),
        (pages.set_pages(3, &[], 0), sequence),
        (pages.set_pages(0, &[], 0), size("pages of the sequence", "none yet", 2)),
        (pages.set_pages(2, &[0, 1, 2, 3], 0), size("pages", "at most the capacity's", 4)),
        (pages.set_pages(2, &[0, 7], 0), size("page", "a page of the cache", 7)),
        (pages.set_pages(2, &[4, 0, 4], 0), size("page", "each page once", 4)),
        (pages.set_pages(2, &[0], 5), size("length", tokens, 5)),
    ] {
        assert_eq!(got, Err(want));
    }
    assert_eq!(format!("{pages:?}"), before);
    let mut contiguous = Pages::new(CacheShape::new(1, 1, 2, 1));
    let paged = size("page_tokens", "a paged cache", 0);
    assert_eq!(contiguous.set_pages(0, &[0], 1), Err(paged));
    assert_eq!(contiguous.set_len(0, 3), Err(size("length", tokens, 3)));
}
