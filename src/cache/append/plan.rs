//! An append on a device: plan, bind, encode.

use std::sync::Arc;

use super::{Append, renamed};
use crate::attention::Pipeline;
use crate::buffers::{Bindable, Need, Range, Recording, encodes, uniform_buffer};
use crate::kernel::{CACHE_THREADS, CacheKernel, PAGE_GROUPS, Slot, check_loops};
use crate::plan::{check_binding, check_groups_and_uniforms, check_module, fold};
use crate::scope::{Later, Now, Scope};
use crate::uniform::ProblemUniform;
use crate::{Attention, Buffers, Dispatch, Error, Operand};

/// An append made ready for one device.
#[derive(Clone, Debug)]
pub struct AppendPlan {
    attention: Attention,
    append: Append,
    steps: Vec<(CacheKernel, Arc<Pipeline>, [u32; 3])>,
}

/// An append bound to a cache and buffers, ready to be recorded any number of times.
#[derive(Clone, Debug)]
pub struct AppendBound {
    recording: Recording,
}

impl Attention {
    /// Validates an append, checks the device's limits, and compiles what no earlier plan has.
    ///
    /// # Errors
    /// What [`Append::validate`] finds; [`Error::Stride`] for odd strides of 16-bit rotated queries;
    /// [`Error::Limit`]; [`Error::Device`].
    pub fn plan_append(&self, append: &Append) -> Result<AppendPlan, Error> {
        AppendPlan::new(self, append, &mut Now)
    }

    /// As [`Attention::plan_append`], and waits for what wgpu has to say of new pipelines.
    ///
    /// # Errors
    /// As [`Attention::plan_append`].
    pub async fn plan_append_async(&self, append: &Append) -> Result<AppendPlan, Error> {
        let mut later = Later::default();
        let plan = AppendPlan::new(self, append, &mut later)?;
        self.settle(later).await.map(|()| plan)
    }
}

impl AppendPlan {
    fn new(
        attention: &Attention,
        append: &Append,
        scope: &mut impl Scope,
    ) -> Result<AppendPlan, Error> {
        append.validate()?;
        let limits = attention.limits();
        check_groups_and_uniforms(Slot::VOut, limits)?;
        for operand in append.operands() {
            let bytes = append.bytes(operand).saturating_sub(append.first_bound(operand, limits));
            check_binding(operand.name(), bytes, limits)?;
        }
        let (rows, cache) = (append.rows(), &append.cache);
        let count =
            |axes: [u32; 3]| axes.into_iter().fold(1u64, |n, axis| n.saturating_mul(axis.into()));
        let tokens = [cache.sequences, append.tokens];
        let texels = cache.k_texels() + cache.v_texels();
        let mut kernels = Vec::new();
        if cache.paging.is_some() {
            let threads = u64::from(PAGE_GROUPS) * u64::from(CACHE_THREADS);
            check_loops(cache.page_texels().div_ceil(threads) + 1, attention.loop_limit())?;
            let all = u64::from(cache.sequences) * threads;
            kernels.push((CacheKernel::PageOut, &rows, all));
            kernels.push((CacheKernel::PageIn, &rows, all));
        }
        let turned = append.turned();
        if let Some(queries) = &turned {
            let rotated = |error| renamed(error, Operand::O, Operand::Rotated);
            queries.check_packed_output().map_err(rotated)?;
            let quads = cache.head_dim.div_ceil(4);
            let all = count([tokens[0], tokens[1], queries.shape.q_heads]);
            kernels.push((CacheKernel::Rotate, queries, all.saturating_mul(quads.into())));
        }
        let all = count([tokens[0], tokens[1], cache.kv_heads]).saturating_mul(texels.into());
        kernels.push((CacheKernel::Append, &rows, all));
        kernels.push((CacheKernel::Bump, &rows, cache.sequences.into()));
        let flags = [attention.has_f16(), cache.in_texture(attention)];
        let mut steps = Vec::new();
        for (kernel, problem, items) in kernels {
            if append.tokens == 0 {
                continue;
            }
            // Numbers of items are u32 in the kernels, the last group's included.
            if items >= (1 << 32) - u64::from(CACHE_THREADS) {
                let (what, need) = ("elements of an append", "below 2^32 texels");
                return Err(Error::Size { what, need, got: items.into() });
            }
            let groups = items.div_ceil(CACHE_THREADS.into());
            let grid = fold(groups, groups, limits.max_compute_workgroups_per_dimension)?;
            let rotary = append.rotary.as_ref();
            let module = kernel.module(problem, cache, rotary, flags, CACHE_THREADS);
            check_module(&module, limits)?;
            steps.push((kernel, attention.pipeline(module, scope)?, grid));
        }
        Ok(AppendPlan { attention: attention.clone(), append: append.clone(), steps })
    }

    /// The dispatches, in order.
    pub fn describe(&self) -> Vec<Dispatch> {
        self.steps.iter().map(|(_, pipeline, grid)| Dispatch::new(pipeline, *grid)).collect()
    }

    /// Checks the buffers (K, V; Q, rotated and rotary if the append has them) and the cache, given by
    /// [`Buffers::cache`], and binds them.
    ///
    /// # Errors
    /// As [`Plan::bind`](crate::Plan::bind); [`Error::Length`] for a cache of another shape.
    pub fn bind(&self, buffers: Buffers<'_>) -> Result<AppendBound, Error> {
        self.bind_in(&buffers, &mut Now)
    }

    /// As [`AppendPlan::bind`], and waits for what wgpu has to say.
    ///
    /// # Errors
    /// As [`AppendPlan::bind`].
    pub async fn bind_async(&self, buffers: Buffers<'_>) -> Result<AppendBound, Error> {
        let mut later = Later::default();
        let bound = self.bind_in(&buffers, &mut later)?;
        later.outcome().await.map(|()| bound)
    }

    fn bind_in(&self, buffers: &Buffers<'_>, scope: &mut impl Scope) -> Result<AppendBound, Error> {
        let append = &self.append;
        let unit = |operand| if operand == Operand::Rotary { 4 } else { append.element.bytes() };
        let need = |operand| Need::new(operand, append.bytes(operand), unit(operand));
        buffers.check(&append.operands().into_iter().map(need).collect::<Vec<_>>())?;
        let cache = buffers.check_cache(Some(&append.cache))?;
        let Some(cache) = cache.filter(|_| !self.steps.is_empty()) else {
            return Ok(AppendBound { recording: Recording::default() });
        };
        let device = self.attention.device();
        let limits = self.attention.limits();
        let before = |operand: Operand| append.first_bound(operand, limits);
        let elements = |operand| (before(operand) / u64::from(append.element.bytes())) as u32;
        // Each of the two problems has operands that the append lays out, and others that it has not.
        let rows = ProblemUniform::rows(&append.rows(), |operand| match operand {
            Operand::K | Operand::V => elements(operand),
            _ => 0,
        });
        let renamed = |operand| match operand {
            Operand::Q => elements(operand),
            Operand::O => elements(Operand::Rotated),
            _ => 0,
        };
        let turned = append.turned().map(|queries| ProblemUniform::rows(&queries, renamed));
        let uniforms = [rows, turned.unwrap_or_default()];
        let uniforms = scope.run(device, || {
            uniforms.map(|uniform| uniform_buffer(device, bytemuck::bytes_of(&uniform)))
        })?;
        let [rows, turned] = uniforms;
        let (rows, turned) = (rows?, turned?);
        let range = |slot: Slot, kernel: CacheKernel| {
            if let Some(bindable) = cache.bindable(slot) {
                return bindable;
            }
            let operand = match slot {
                Slot::Scratch => return cache.copies().unwrap_or(Bindable::whole(&rows)),
                Slot::K => Operand::K,
                Slot::V => Operand::V,
                Slot::Q => Operand::Q,
                Slot::O => Operand::Rotated,
                Slot::Rotary => Operand::Rotary,
                _ if kernel == CacheKernel::Rotate => return Bindable::whole(&turned),
                _ => return Bindable::whole(&rows),
            };
            let Some(buffer) = buffers.get(operand) else { return Bindable::whole(&rows) };
            let offset = before(operand);
            let size = append.bytes(operand) - offset;
            Bindable::Bytes(Range { buffer, offset, size })
        };
        let dispatches = scope.run(device, || {
            let steps = self.steps.iter();
            let dispatch = |(kernel, pipeline, grid): &(CacheKernel, Arc<Pipeline>, [u32; 3])| {
                pipeline.dispatch(device, *grid, |slot| range(slot, *kernel))
            };
            steps.map(dispatch).collect()
        })?;
        Ok(AppendBound { recording: Recording(dispatches) })
    }
}

encodes!(AppendBound, "Records the dispatches into a pass: page copies, rotation, rows, lengths.");
