//! The rows of a cache in plain f32, to be read back or worked on.

use std::sync::Arc;

use crate::attention::Pipeline;
use crate::buffers::{Bindable, Need, Range, Recording, encodes, uniform_buffer};
use crate::kernel::{CACHE_THREADS, CacheKernel, Slot};
use crate::plan::{check_binding, check_groups_and_uniforms, check_module, fold};
use crate::scope::{Now, Scope};
use crate::uniform::ProblemUniform;
use crate::{Attention, Buffers, CacheShape, Dispatch, Error, Operand, Problem, Shape};

/// Copies what a cache holds to contiguous f32 K `[sequence, kv_head, capacity, head_dim]` and V
/// likewise; 0 past each sequence's end.
#[derive(Clone, Debug)]
pub struct Unpack {
    attention: Attention,
    cache: CacheShape,
    pipeline: Arc<Pipeline>,
    grid: [u32; 3],
}

/// An unpacking bound to a cache and buffers, ready to be recorded any number of times.
#[derive(Clone, Debug)]
pub struct UnpackBound {
    recording: Recording,
}

impl Attention {
    /// Plans the unpacking of caches of this shape.
    ///
    /// # Errors
    /// What [`CacheShape::validate`] finds; [`Error::Size`], [`Error::Limit`] for plain rows that do
    /// not fit; [`Error::Device`].
    pub fn plan_unpack(&self, cache: CacheShape) -> Result<Unpack, Error> {
        cache.validate()?;
        let limits = self.limits();
        check_groups_and_uniforms(Slot::VOut, limits)?;
        let rows = rows(&cache);
        rows.validate()?;
        for operand in [Operand::K, Operand::V] {
            check_binding(operand.name(), rows.bytes(operand), limits)?;
        }
        let quads = cache.head_dim.max(cache.value_dim).div_ceil(4);
        let rows_all = u64::from(cache.sequences) * u64::from(cache.kv_heads);
        let items = rows_all.saturating_mul(u64::from(cache.capacity) * u64::from(quads));
        if items >= (1 << 32) - u64::from(CACHE_THREADS) {
            let (what, need) = ("elements of the cache", "below 2^32 quads");
            return Err(Error::Size { what, need, got: items.into() });
        }
        let groups = items.div_ceil(CACHE_THREADS.into());
        let grid = fold(groups, groups, limits.max_compute_workgroups_per_dimension)?;
        let flags = [false, cache.in_texture(self)];
        let module = CacheKernel::Unpack.module(&rows, &cache, None, flags, CACHE_THREADS);
        check_module(&module, limits)?;
        let pipeline = self.pipeline(module, &mut Now)?;
        Ok(Unpack { attention: self.clone(), cache, pipeline, grid })
    }
}

/// K and V, plain.
fn rows(cache: &CacheShape) -> Problem {
    Problem::new(Shape {
        batch: cache.sequences,
        q_heads: cache.kv_heads,
        kv_heads: cache.kv_heads,
        q_len: 0,
        kv_len: cache.capacity,
        head_dim: cache.head_dim,
        value_dim: cache.value_dim,
    })
}

impl Unpack {
    /// The dispatch.
    pub fn describe(&self) -> Dispatch {
        Dispatch::new(&self.pipeline, self.grid)
    }

    /// Binds a cache, given by [`Buffers::cache`], and buffers for K and V.
    ///
    /// # Errors
    /// As [`Plan::bind`](crate::Plan::bind); [`Error::Length`] for a cache of another shape.
    pub fn bind(&self, buffers: Buffers<'_>) -> Result<UnpackBound, Error> {
        let rows = rows(&self.cache);
        let need = |operand| Need { written: true, ..Need::new(operand, rows.bytes(operand), 4) };
        buffers.check(&[Operand::K, Operand::V].map(need))?;
        let cache = buffers.check_cache(Some(&self.cache))?;
        let device = self.attention.device();
        let uniform = ProblemUniform::rows(&rows, |_| 0);
        let uniform =
            Now.run(device, || uniform_buffer(device, bytemuck::bytes_of(&uniform)))??;
        let range = |slot: Slot| {
            if let Some(bindable) = cache.and_then(|cache| cache.bindable(slot)) {
                return bindable;
            }
            let operand = match slot {
                Slot::KOut => Operand::K,
                Slot::VOut => Operand::V,
                _ => return Bindable::whole(&uniform),
            };
            let size = rows.bytes(operand);
            buffers.get(operand).map_or(Bindable::whole(&uniform), |buffer| {
                Bindable::Bytes(Range { buffer, offset: 0, size })
            })
        };
        let dispatch = Now.run(device, || self.pipeline.dispatch(device, self.grid, range))?;
        Ok(UnpackBound { recording: Recording(vec![dispatch]) })
    }
}

encodes!(UnpackBound, "Records the dispatch into a pass.");
