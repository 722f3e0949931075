//! The definition, fed the same tokens: f32 keys and values in plain memory, attention in f64.

use wgpu_attention::{Append, CacheShape, Element, Error, Inputs, cpu};

use crate::args::Sizes;

/// One layer's.
pub struct Twin {
    cache: cpu::KvCache,
    shape: CacheShape,
    sizes: Sizes,
    /// The newest tokens' queries, turned.
    queries: Vec<f32>,
    tokens: u32,
}

/// How far outputs are from the definition's.
#[derive(Clone, Copy, Default)]
pub struct Distance {
    /// Sums of squares, of the difference and of what is right.
    off: f64,
    all: f64,
    /// The largest difference.
    pub most: f64,
}

impl Distance {
    pub fn with(self, other: Distance) -> Distance {
        let Distance { off, all, most } = other;
        // A maximum that keeps NaN.
        let most = if most > self.most || most.is_nan() { most } else { self.most };
        Distance { off: self.off + off, all: self.all + all, most }
    }

    /// RMS(o - o_f32) / RMS(o_f32)
    pub fn relative(&self) -> f64 {
        (self.off / self.all).sqrt()
    }
}

impl Twin {
    pub fn new(sizes: Sizes) -> Result<Twin, Error> {
        let shape = sizes.cache(Element::F32);
        let cache = cpu::KvCache::new(shape)?;
        Ok(Twin { cache, shape, sizes, queries: Vec::new(), tokens: 0 })
    }

    /// `rows`: Q, K and V, `[head, token, dim]`.
    pub fn append(
        &mut self,
        tokens: u32,
        rows: &[Vec<f32>; 3],
        table: &[f32],
    ) -> Result<(), Error> {
        let append = Append::new(self.shape, tokens).rotary(self.sizes.rotary());
        let [q, k, v] = rows;
        let inputs = cpu::AppendInputs { k, v, q: Some(q), rotary: Some(table) };
        let queries = self.cache.append(&append.queries(self.sizes.heads), &[tokens], inputs)?;
        (self.queries, self.tokens) = (queries.unwrap_or_default(), tokens);
        Ok(())
    }

    /// Of the newest tokens' outputs.
    pub fn distance(&self, o: &[f32]) -> Result<Distance, Error> {
        let problem = self.cache.problem(&self.shape.problem(self.sizes.heads, self.tokens));
        let inputs = Inputs::<f32>::new(&self.queries, self.cache.k(), self.cache.v());
        let want = cpu::attention(&problem, inputs.kv_lens(self.cache.lens()))?.o;
        let one = |(&got, &want): (&f32, &f32)| {
            let (got, want) = (f64::from(got), f64::from(want));
            let most = (got - want).abs();
            Distance { off: most * most, all: want * want, most }
        };
        Ok(o.iter().zip(&want).map(one).fold(Distance::default(), Distance::with))
    }
}
