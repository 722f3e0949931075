//! The twin of [`KvCache`](crate::KvCache): the same rows, in plain memory.

use crate::{Append, CacheShape, Element, Error, Operand, Problem, Scalar};

/// Keys and values of many sequences as a [`KvCache`](crate::KvCache) of this shape would hold them,
/// rounded to its storage type, as f32. It has no pages: a row is where it belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct KvCache {
    shape: CacheShape,
    lens: Vec<u32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

/// The slices of an [`Append`].
#[derive(Clone, Copy, Debug)]
pub struct AppendInputs<'a, T = f32> {
    /// New keys, `[sequence, kv_head, token, head_dim]`.
    pub k: &'a [T],
    /// New values, `[sequence, kv_head, token, value_dim]`.
    pub v: &'a [T],
    /// Queries to be turned, `[sequence, q_head, token, head_dim]`.
    pub q: Option<&'a [T]>,
    /// Cosines and sines, `[position, pair, 2]`.
    pub rotary: Option<&'a [f32]>,
}

impl KvCache {
    /// An empty cache.
    ///
    /// # Errors
    /// What [`CacheShape::validate`] finds.
    pub fn new(shape: CacheShape) -> Result<KvCache, Error> {
        shape.validate()?;
        let rows = shape.sequences as usize * shape.kv_heads as usize * shape.capacity as usize;
        let zeros = |dim: u32| vec![0.0; rows * dim as usize];
        let lens = vec![0; shape.sequences as usize];
        Ok(KvCache { shape, lens, k: zeros(shape.head_dim), v: zeros(shape.value_dim) })
    }

    /// Each sequence's tokens.
    pub fn lens(&self) -> &[u32] {
        &self.lens
    }

    /// K, `[sequence, kv_head, capacity, head_dim]`, 0 past each sequence's end.
    pub fn k(&self) -> &[f32] {
        &self.k
    }

    /// V, `[sequence, kv_head, capacity, value_dim]`, 0 past each sequence's end.
    pub fn v(&self) -> &[f32] {
        &self.v
    }

    /// A cached problem as one over plain f32 keys, values and kv_lens, for
    /// [`cpu::attention`](crate::cpu::attention).
    pub fn problem(&self, cached: &Problem) -> Problem {
        cached.over_rows()
    }

    /// Appends the first `counts[s]` tokens to each sequence s; returns the rotated queries, if there
    /// are any, laid out as the append says.
    ///
    /// # Errors
    /// What [`Append::validate`] finds; [`Error::Length`], [`Error::Missing`], [`Error::Unexpected`]
    /// for slices that do not fit; [`Error::Full`] past the capacity; [`Error::Size`] for counts past
    /// the append's tokens. Nothing has changed then.
    pub fn append<T: Scalar>(
        &mut self,
        append: &Append,
        counts: &[u32],
        inputs: AppendInputs<'_, T>,
    ) -> Result<Option<Vec<T>>, Error> {
        append.validate()?;
        self.check(append, counts, &inputs)?;
        let CacheShape { kv_heads, capacity, head_dim, value_dim, element, .. } = self.shape;
        let rows = append.rows();
        let layouts = [Operand::K, Operand::V].map(|operand| rows.layout_of(operand));
        for (sequence, &count) in (0u32..).zip(counts) {
            let length = self.lens[sequence as usize];
            for (head, token) in (0..kv_heads).flat_map(|h| (0..count).map(move |t| (h, t))) {
                let at = [sequence, head, token];
                let k = plain(inputs.k, layouts[0].start(at), head_dim);
                let k = turn(append, inputs.rotary, &k, length + token);
                let v = plain(inputs.v, layouts[1].start(at), value_dim);
                let row = (sequence as usize * kv_heads as usize + head as usize)
                    * capacity as usize
                    + (length + token) as usize;
                let [dk, dv] = [head_dim, value_dim].map(|dim| dim as usize);
                self.k[row * dk..][..dk].copy_from_slice(&stored(&k, element));
                self.v[row * dv..][..dv].copy_from_slice(&stored(&v, element));
            }
        }
        let rotated = append.turned().map(|queries| {
            let [from, to] = [Operand::Q, Operand::O].map(|operand| queries.layout_of(operand));
            let mut rotated = vec![T::from_f64(0.0); queries.elements(Operand::O) as usize];
            let shape = queries.shape;
            for sequence in 0..shape.batch {
                let length = self.lens[sequence as usize];
                let rows = (0..shape.q_heads).flat_map(|h| (0..shape.q_len).map(move |t| (h, t)));
                for (head, token) in rows {
                    let at = [sequence, head, token];
                    let q = plain(inputs.q.unwrap_or(&[]), from.start(at), head_dim);
                    let q = turn(append, inputs.rotary, &q, length + token);
                    let to = &mut rotated[to.start(at)..][..head_dim as usize];
                    to.iter_mut().zip(&q).for_each(|(to, q)| *to = T::from_f64((*q).into()));
                }
            }
            rotated
        });
        self.lens.iter_mut().zip(counts).for_each(|(len, count)| *len += count);
        Ok(rotated)
    }

    fn check<T>(
        &self,
        append: &Append,
        counts: &[u32],
        inputs: &AppendInputs<'_, T>,
    ) -> Result<(), Error> {
        if append.cache != self.shape || counts.len() != self.lens.len() {
            let (need, got) = (self.lens.len() as u64, counts.len() as u64);
            return Err(Error::Length { operand: Operand::Cache, need, got });
        }
        let given = [
            (Operand::K, Some(inputs.k.len())),
            (Operand::V, Some(inputs.v.len())),
            (Operand::Q, inputs.q.map(<[T]>::len)),
            (Operand::Rotary, inputs.rotary.map(<[f32]>::len)),
        ];
        for (operand, got) in given {
            let need = append.elements(operand);
            let wanted = match operand {
                Operand::Q => append.turned().is_some(),
                Operand::Rotary => append.rotary.is_some(),
                _ => true,
            };
            match got.map(|got| got as u64) {
                None if wanted => return Err(Error::Missing { operand }),
                Some(_) if !wanted => return Err(Error::Unexpected { operand }),
                Some(got) if got < need => return Err(Error::Length { operand, need, got }),
                _ => {}
            }
        }
        for (&len, &count) in self.lens.iter().zip(counts) {
            if count > append.tokens {
                let need = "at most the append's tokens";
                return Err(Error::Size { what: "count", need, got: count.into() });
            }
            let need = u64::from(len) + u64::from(count);
            if need > self.shape.capacity.into() {
                let (what, got) = ("tokens of a sequence", self.shape.capacity.into());
                return Err(Error::Full { what, need, got });
            }
        }
        Ok(())
    }

    /// Forgets a sequence's tokens past `len`.
    ///
    /// # Errors
    /// [`Error::Size`] if there is no such sequence, or it has fewer tokens.
    pub fn truncate(&mut self, sequence: u32, len: u32) -> Result<(), Error> {
        let at = self.at(sequence)?;
        if len > self.lens[at] {
            let need = "at most the sequence's tokens";
            return Err(Error::Size { what: "length", need, got: len.into() });
        }
        self.lens[at] = len;
        self.each_head(|rows, dim, capacity, head| {
            let first = (sequence as usize * head.1 + head.0) * capacity;
            rows[(first + len as usize) * dim..(first + capacity) * dim].fill(0.0);
        });
        Ok(())
    }

    /// An empty sequence begins with the first `tokens` of another one.
    ///
    /// # Errors
    /// [`Error::Size`] as [`KvCache::share`](crate::KvCache::share).
    pub fn share(&mut self, from: u32, to: u32, tokens: u32) -> Result<(), Error> {
        let [a, b] = [self.at(from)?, self.at(to)?];
        let sizes = [
            ("shared tokens", "at most the other sequence's", tokens, self.lens[a]),
            ("tokens of the sequence", "none yet", self.lens[b], 0),
        ];
        if let Some((what, need, got, _)) = sizes.into_iter().find(|size| size.2 > size.3) {
            return Err(Error::Size { what, need, got: got.into() });
        }
        self.lens[b] = tokens;
        self.each_head(|rows, dim, capacity, head| {
            let first = |sequence: usize| (sequence * head.1 + head.0) * capacity * dim;
            let all = first(a)..first(a) + tokens as usize * dim;
            rows.copy_within(all, first(b));
        });
        Ok(())
    }

    fn at(&self, sequence: u32) -> Result<usize, Error> {
        let need = "a sequence of the cache";
        match sequence < self.shape.sequences {
            true => Ok(sequence as usize),
            false => Err(Error::Size { what: "sequence", need, got: sequence.into() }),
        }
    }

    /// K, then V, of each (head, heads): rows, dim, capacity.
    fn each_head(&mut self, mut work: impl FnMut(&mut [f32], usize, usize, (usize, usize))) {
        let CacheShape { kv_heads, capacity, head_dim, value_dim, .. } = self.shape;
        let heads = kv_heads as usize;
        for head in 0..heads {
            work(&mut self.k, head_dim as usize, capacity as usize, (head, heads));
            work(&mut self.v, value_dim as usize, capacity as usize, (head, heads));
        }
    }
}

fn plain<T: Scalar>(rows: &[T], first: usize, dim: u32) -> Vec<f32> {
    rows[first..first + dim as usize].iter().map(|x| x.to_f64() as f32).collect()
}

/// x' = x cos - y sin, y' = y cos + x sin for each pair, at one position.
fn turn(append: &Append, table: Option<&[f32]>, row: &[f32], position: u32) -> Vec<f32> {
    let (Some(rotary), Some(table)) = (&append.rotary, table) else { return row.to_vec() };
    let turned = |(dim, &x): (u32, &f32)| {
        let Some((pair, other, first)) = rotary.partner(dim) else { return x };
        // Queries that count for nothing may stand past the last position.
        let position = position.min(rotary.positions - 1) as usize;
        let at = 2 * (position * rotary.pairs as usize + pair as usize);
        let (cosine, sine) = (table[at], table[at + 1]);
        let y = row[other as usize];
        x * cosine + if first { -y } else { y } * sine
    };
    (0u32..).zip(row).map(turned).collect()
}

/// A row as a storage type keeps it.
fn stored(row: &[f32], element: Element) -> Vec<f32> {
    let each = |keep: fn(f32) -> f32| row.iter().copied().map(keep).collect();
    match element {
        Element::F32 => row.to_vec(),
        Element::F16 => each(|x| half::f16::from_f32(x).into()),
        Element::Bf16 => each(|x| half::bf16::from_f32(x).into()),
        Element::Int8 => {
            let scale = row.iter().fold(0.0f32, |most, x| most.max(x.abs())) / 127.0;
            // 127 times the next one is not a number.
            let most = (f32::MAX / 127.0).next_down();
            let scale = if scale.is_finite() { scale.min(most) } else { scale };
            let byte = |x: &f32| (x / scale.max(f32::MIN_POSITIVE)).clamp(-127.0, 127.0);
            row.iter().map(|x| scale * byte(x).round_ties_even()).collect()
        }
    }
}
