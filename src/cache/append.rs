//! New rows at the end of each sequence of a cache.

use std::sync::Arc;

use crate::attention::Pipeline;
use crate::buffers::{Bindable, Need, Range, Recording, begin_pass, first_bound, uniform_buffer};
use crate::kernel::{CACHE_THREADS, CacheKernel, Slot};
use crate::plan::{check_binding, check_groups_and_uniforms, check_storage_buffers, fold};
use crate::scope::{Later, Now, Scope};
use crate::uniform::ProblemUniform;
use crate::{
    Attention, Buffers, CacheShape, Dispatch, Element, Error, Group, Layout, Operand, Problem,
    Rotary, Shape,
};

/// Rows of K `[sequence, kv_head, token, head_dim]` and V that go to the end of each sequence of a
/// cache, turned by their positions if there is a [`Rotary`]; and queries of the same tokens, turned
/// likewise.
///
/// A sequence gets the first n of its tokens here, as [`KvCache::extend`](crate::KvCache::extend)
/// says.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Append {
    pub(crate) cache: CacheShape,
    pub(crate) tokens: u32,
    element: Element,
    q_heads: Option<u32>,
    pub(crate) rotary: Option<Rotary>,
    /// Of K, V, Q and rotated, in that order.
    layouts: [Option<Layout>; 4],
    misplaced: Option<Operand>,
}

const LAID_OUT: [Operand; 4] = [Operand::K, Operand::V, Operand::Q, Operand::Rotated];

impl Append {
    /// Up to `tokens` contiguous f32 rows for each sequence, as they are.
    pub const fn new(cache: CacheShape, tokens: u32) -> Append {
        let (element, layouts) = (Element::F32, [None; 4]);
        let (q_heads, rotary, misplaced) = (None, None, None);
        Append { cache, tokens, element, q_heads, rotary, layouts, misplaced }
    }

    /// Storage type of the new rows (and queries), whatever the cache's.
    pub fn element(self, element: Element) -> Append {
        Append { element, ..self }
    }

    /// Turns K by [`Operand::Rotary`].
    pub fn rotary(self, rotary: Rotary) -> Append {
        Append { rotary: Some(rotary), ..self }
    }

    /// Turns [`Operand::Q`], `[sequence, q_head, token, head_dim]`, too, into [`Operand::Rotated`].
    pub fn queries(self, q_heads: u32) -> Append {
        Append { q_heads: Some(q_heads), ..self }
    }

    /// Strides of K, V, Q or rotated; contiguous head-major if not called.
    pub fn layout(mut self, operand: Operand, layout: Layout) -> Append {
        match LAID_OUT.iter().position(|&o| o == operand) {
            Some(at) => self.layouts[at] = Some(layout),
            None => self.misplaced = Some(operand),
        }
        self
    }

    /// Checks every rule that needs no data and no device, the same for CPU and GPU.
    ///
    /// # Errors
    /// What [`CacheShape::validate`] and [`Problem::validate`] find; [`Error::Size`] for a rotary
    /// table that does not fit, [`Error::Missing`] for queries without one, [`Error::Unexpected`] for
    /// a layout of something else.
    pub fn validate(&self) -> Result<(), Error> {
        if let Some(operand) = self.misplaced {
            return Err(Error::Unexpected { operand });
        }
        self.cache.validate()?;
        if let Some(rotary) = &self.rotary {
            rotary.validate(&self.cache)?;
        } else if self.q_heads.is_some() {
            return Err(Error::Missing { operand: Operand::Rotary });
        }
        self.rows().validate().map_err(|error| renamed(error, Operand::Q, Operand::K))?;
        let queries = self.turned().map_or(Ok(()), |queries| queries.validate());
        queries.map_err(|error| renamed(error, Operand::O, Operand::Rotated))
    }

    /// Elements an operand's buffer must have, its layout's offset included.
    pub fn elements(&self, operand: Operand) -> u64 {
        match (operand, self.turned()) {
            (Operand::K | Operand::V, _) => self.rows().elements(operand),
            (Operand::Q, Some(queries)) => queries.elements(Operand::Q),
            (Operand::Rotated, Some(queries)) => queries.elements(Operand::O),
            (Operand::Rotary, _) => self.rotary.map_or(0, |rotary| rotary.elements()),
            _ => 0,
        }
    }

    /// Bytes an operand's buffer must have, whole words.
    pub fn bytes(&self, operand: Operand) -> u64 {
        let element = if operand == Operand::Rotary { Element::F32 } else { self.element };
        let bytes = self.elements(operand).saturating_mul(element.bytes().into());
        bytes.div_ceil(4).saturating_mul(4)
    }

    /// K and V as a problem's.
    pub(crate) fn rows(&self) -> Problem {
        let problem = self.problem(self.cache.kv_heads, self.cache.value_dim);
        let [k, v, ..] = self.layouts;
        let with = |problem: Problem, operand, layout: Option<Layout>| match layout {
            Some(layout) => problem.layout(operand, layout),
            None => problem,
        };
        with(with(problem, Operand::K, k), Operand::V, v)
    }

    /// Queries and what they turn into, as a problem's Q and O.
    pub(crate) fn turned(&self) -> Option<Problem> {
        let problem = self.problem(self.q_heads?, self.cache.head_dim);
        let [.., q, rotated] = self.layouts;
        let with = |problem: Problem, operand, layout: Option<Layout>| match layout {
            Some(layout) => problem.layout(operand, layout),
            None => problem,
        };
        Some(with(with(problem, Operand::Q, q), Operand::O, rotated))
    }

    fn problem(&self, q_heads: u32, value_dim: u32) -> Problem {
        let CacheShape { sequences: batch, kv_heads, head_dim, .. } = self.cache;
        let (q_len, kv_len) = (self.tokens, self.tokens);
        let shape = Shape { batch, q_heads, kv_heads, q_len, kv_len, head_dim, value_dim };
        let problem = Problem::new(shape).element(Group::Queries, self.element);
        problem.element(Group::Keys, self.element)
    }

    fn operands(&self) -> Vec<Operand> {
        let all = [Operand::K, Operand::V, Operand::Q, Operand::Rotated, Operand::Rotary];
        let has = |operand: &Operand| match operand {
            Operand::Q | Operand::Rotated => self.q_heads.is_some(),
            Operand::Rotary => self.rotary.is_some(),
            _ => true,
        };
        all.into_iter().filter(has).collect()
    }

    /// First element of an operand.
    fn offset(&self, operand: Operand) -> u32 {
        let at = LAID_OUT.iter().position(|&o| o == operand);
        at.and_then(|at| self.layouts[at]).map_or(0, |layout| layout.offset)
    }
}

/// An error of a problem that stands for a part of an append, with the operand's name here.
fn renamed(error: Error, from: Operand, to: Operand) -> Error {
    match error {
        Error::Stride { operand, need, got } if operand == from => {
            Error::Stride { operand: to, need, got }
        }
        Error::Element { operand, need, got } if operand == from => {
            Error::Element { operand: to, need, got }
        }
        other => other,
    }
}

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
            let first =
                4 * u64::from(append.offset(operand)) / 4 * u64::from(append.element.bytes());
            let bytes = append.bytes(operand).saturating_sub(first_bound(first, limits));
            check_binding(operand.name(), bytes, limits)?;
        }
        let (rows, cache) = (append.rows(), &append.cache);
        let count =
            |axes: [u32; 3]| axes.into_iter().fold(1u64, |n, axis| n.saturating_mul(axis.into()));
        let tokens = [cache.sequences, append.tokens];
        let texels = cache.k_texels() + cache.v_texels();
        let pages = u64::from(cache.sequences) * cache.page_texels().div_ceil(CACHE_THREADS.into());
        let mut kernels = Vec::new();
        if cache.paging.is_some() {
            let threads = u64::from(CACHE_THREADS);
            kernels.push((CacheKernel::PageOut, &rows, pages.saturating_mul(threads)));
            kernels.push((CacheKernel::PageIn, &rows, pages.saturating_mul(threads)));
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
            check_storage_buffers(&module, limits)?;
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
        let before = |operand: Operand| {
            let bytes = append.element.bytes();
            let first = u64::from(append.offset(operand)) * u64::from(bytes);
            first_bound(first, limits)
        };
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
                Slot::Scratch => return cache.copies().unwrap_or(whole(&rows)),
                Slot::K => Operand::K,
                Slot::V => Operand::V,
                Slot::Q => Operand::Q,
                Slot::O => Operand::Rotated,
                Slot::Rotary => Operand::Rotary,
                _ if kernel == CacheKernel::Rotate => return whole(&turned),
                _ => return whole(&rows),
            };
            let Some(buffer) = buffers.get(operand) else { return whole(&rows) };
            let offset = if operand == Operand::Rotary { 0 } else { before(operand) };
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

pub(super) fn whole(buffer: &wgpu::Buffer) -> Bindable<'_> {
    Bindable::Bytes(Range { buffer, offset: 0, size: buffer.size() })
}

impl AppendBound {
    /// Records the dispatches into a pass: page copies, rotation, rows, lengths. Sets pipeline and
    /// bind group 0, and leaves them set.
    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
        self.recording.encode(pass);
    }

    /// Records one labelled pass into an encoder.
    pub fn encode_in(&self, encoder: &mut wgpu::CommandEncoder) {
        self.encode(&mut begin_pass(encoder));
    }
}
