//! A projection on a device: plan, bind, encode.

use std::sync::Arc;

use super::{LAID_OUT, Projection, Rows};
use crate::attention::Pipeline;
use crate::buffers::{Need, Range, Recording, encodes, first_bound, uniform_buffer};
use crate::kernel::{Constant, Module, Slot, check_loops, check_workgroup, compose, shader};
use crate::plan::{check_binding, check_groups_and_uniforms, check_module, fold};
use crate::scope::{Later, Now, Scope};
use crate::{Attention, Buffers, Dispatch, Error, Operand};

/// A projection made ready for one device.
#[derive(Clone, Debug)]
pub struct ProjectionPlan {
    attention: Attention,
    projection: Projection,
    /// `None` if there is nothing to compute.
    step: Option<(Arc<Pipeline>, [u32; 3])>,
    output_tiles: u32,
    groups: u32,
}

/// A projection bound to buffers, ready to be recorded any number of times.
#[derive(Clone, Debug)]
pub struct ProjectionBound {
    pub(crate) recording: Recording,
}

/// `Projection` of projection.wgsl.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
struct ProjectionUniform {
    x_offset: u32,
    x_row: u32,
    w_offset: u32,
    w_row: u32,
    b_offset: u32,
    residual_offset: u32,
    residual_row: u32,
    y_offset: u32,
    y_row: u32,
    tokens: u32,
    input: u32,
    output: u32,
    output_tiles: u32,
    groups: u32,
}

impl Attention {
    /// Validates a projection, checks the device's limits, and compiles its kernel if no earlier
    /// plan has.
    ///
    /// # Errors
    /// What [`Projection::validate`] finds; [`Error::Limit`]; [`Error::Device`].
    pub fn plan_projection(&self, projection: &Projection) -> Result<ProjectionPlan, Error> {
        self.plan_projection_in(projection, &mut Now)
    }

    /// As [`Attention::plan_projection`], and waits for what wgpu has to say of a new pipeline.
    ///
    /// # Errors
    /// As [`Attention::plan_projection`].
    pub async fn plan_projection_async(
        &self,
        projection: &Projection,
    ) -> Result<ProjectionPlan, Error> {
        let mut later = Later::default();
        let plan = self.plan_projection_in(projection, &mut later)?;
        self.settle(later).await.map(|()| plan)
    }

    pub(crate) fn plan_projection_in(
        &self,
        projection: &Projection,
        scope: &mut impl Scope,
    ) -> Result<ProjectionPlan, Error> {
        projection.validate()?;
        let limits = self.limits();
        check_groups_and_uniforms(Slot::Tables, limits)?;
        for operand in projection.operands() {
            let first = first_bound(4 * u64::from(projection.rows_of(operand).offset), limits);
            let bytes = (4 * projection.elements(operand)).saturating_sub(first);
            check_binding(operand.name(), bytes, limits)?;
        }
        // Square workgroups of 16 x 16 or 8 x 8 threads, each with 4 x 4 results.
        let (tokens, input, output) = projection.sizes();
        let large = tokens > 32 && output > 32;
        let fits =
            |threads: u32| check_workgroup(threads * threads, workgroup_bytes(threads), limits);
        let threads = if large && fits(16).is_ok() { 16 } else { 8 };
        fits(threads)?;
        let module = module(projection, threads);
        check_module(&module, limits)?;
        let chunks = u64::from(input.div_ceil(4 * QUADS));
        check_loops(chunks * ITERATIONS_PER_CHUNK + ITERATIONS_AFTER, self.loop_limit())?;
        let output_tiles = output.div_ceil(4 * threads);
        let groups = u64::from(tokens.div_ceil(4 * threads)) * u64::from(output_tiles);
        let mut step = None;
        if groups > 0 {
            let grid = fold(groups, groups, limits.max_compute_workgroups_per_dimension)?;
            step = Some((self.pipeline(module, scope)?, grid));
        }
        let (attention, projection) = (self.clone(), projection.clone());
        Ok(ProjectionPlan { attention, projection, step, output_tiles, groups: groups as u32 })
    }
}

/// Quads of the input dims in workgroup memory at a time.
const QUADS: u32 = 4;
/// Loop iterations of one such chunk, counted as rolled: two loads of at most 2 trips, 4 trips of
/// the product, each loop's final test.
const ITERATIONS_PER_CHUNK: u64 = 1 + 3 + 3 + 5;
/// The loop's own final test, and four stores of a quad, element by element.
const ITERATIONS_AFTER: u64 = 1 + 4 * 5;

fn workgroup_bytes(threads: u32) -> u32 {
    16 * (4 * threads * (QUADS + 1) + 4 * QUADS * threads)
}

fn module(projection: &Projection, threads: u32) -> Module {
    let constants = [
        (Constant::PROJECT_THREADS, threads),
        (Constant::PROJECT_TILE, 4 * threads),
        (Constant::PROJECT_QUADS, QUADS),
    ];
    let storage = match projection.is_quads() {
        true => shader!("project/projection_quads"),
        false => shader!("project/projection_words"),
    };
    let bias = match projection.bias {
        true => shader!("project/row_bias_buffer"),
        false => shader!("project/row_bias_none"),
    };
    let residual = match projection.residual {
        true => shader!("project/residual_buffer"),
        false => shader!("project/residual_none"),
    };
    let files = [shader!("project/projection"), storage, bias, residual, shader!("project")];
    let mut slots = vec![Slot::Problem];
    slots.extend(projection.operands().into_iter().filter_map(Slot::of));
    Module {
        name: "project",
        wgsl: compose("", &constants, &files),
        slots,
        threads: threads * threads,
        workgroup_bytes: workgroup_bytes(threads),
    }
}

impl ProjectionPlan {
    /// What this plan will do; nothing if there are no tokens.
    pub fn describe(&self) -> Option<Dispatch> {
        self.step.as_ref().map(|(pipeline, grid)| Dispatch::new(pipeline, *grid))
    }

    /// Checks the buffers (X, W, Y, and B, residual if the projection has them) and binds them.
    ///
    /// # Errors
    /// As [`Plan::bind`](crate::Plan::bind).
    pub fn bind(&self, buffers: Buffers<'_>) -> Result<ProjectionBound, Error> {
        self.bind_in(&buffers, &mut Now)
    }

    /// As [`ProjectionPlan::bind`], and waits for what wgpu has to say.
    ///
    /// # Errors
    /// As [`Plan::bind`](crate::Plan::bind).
    pub async fn bind_async(&self, buffers: Buffers<'_>) -> Result<ProjectionBound, Error> {
        let mut later = Later::default();
        let bound = self.bind_in(&buffers, &mut later)?;
        later.outcome().await.map(|()| bound)
    }

    pub(crate) fn bind_in(
        &self,
        buffers: &Buffers<'_>,
        scope: &mut impl Scope,
    ) -> Result<ProjectionBound, Error> {
        let projection = &self.projection;
        let need = |operand: Operand| Need::new(operand, 4 * projection.elements(operand), 4);
        buffers.check(&projection.operands().into_iter().map(need).collect::<Vec<_>>())?;
        let Some((pipeline, grid)) = &self.step else {
            return Ok(ProjectionBound { recording: Recording::default() });
        };
        let device = self.attention.device();
        let uniform = self.uniform();
        let uniforms =
            scope.run(device, || uniform_buffer(device, bytemuck::bytes_of(&uniform)))??;
        let range = |slot: Slot| {
            let operand = LAID_OUT.into_iter().find(|&operand| Slot::of(operand) == Some(slot));
            let bound = operand.and_then(|operand| Some((operand, buffers.get(operand)?)));
            let Some((operand, buffer)) = bound else {
                let size = size_of::<ProjectionUniform>() as u64;
                return Range { buffer: &uniforms, offset: 0, size };
            };
            let offset = self.first_bound(operand);
            Range { buffer, offset, size: 4 * projection.elements(operand) - offset }
        };
        let dispatch = scope.run(device, || pipeline.dispatch(device, *grid, range))?;
        Ok(ProjectionBound { recording: Recording(vec![dispatch]) })
    }

    /// In bytes.
    fn first_bound(&self, operand: Operand) -> u64 {
        let first = 4 * u64::from(self.projection.rows_of(operand).offset);
        first_bound(first, self.attention.limits())
    }

    fn uniform(&self) -> ProjectionUniform {
        let rows = |operand: Operand| {
            let Rows { offset, stride } = self.projection.rows_of(operand);
            (offset - (self.first_bound(operand) / 4) as u32, stride)
        };
        let [x, w, b, residual, y] = LAID_OUT.map(rows);
        let (tokens, input, output) = self.projection.sizes();
        ProjectionUniform {
            x_offset: x.0,
            x_row: x.1,
            w_offset: w.0,
            w_row: w.1,
            b_offset: b.0,
            residual_offset: residual.0,
            residual_row: residual.1,
            y_offset: y.0,
            y_row: y.1,
            tokens,
            input,
            output,
            output_tiles: self.output_tiles,
            groups: self.groups,
        }
    }
}

encodes!(ProjectionBound, "Records the dispatch into a pass.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_equals_the_shader() {
        let offsets = crate::uniform::tests::wgsl(
            include_str!("../../shaders/project/projection.wgsl"),
            "Projection",
        );
        let fields = [
            "x_offset",
            "x_row",
            "w_offset",
            "w_row",
            "b_offset",
            "residual_offset",
            "residual_row",
            "y_offset",
            "y_row",
            "tokens",
            "input",
            "output",
            "output_tiles",
            "groups",
        ];
        let expected = fields.iter().zip((0u32..).step_by(4)).map(|(f, at)| (f.to_string(), at));
        assert_eq!(offsets, (expected.collect(), size_of::<ProjectionUniform>() as u32));
        assert_eq!(std::mem::offset_of!(ProjectionUniform, tokens), 36);
        assert_eq!(std::mem::offset_of!(ProjectionUniform, groups), 52);
    }
}
