//! A merge on a device: what is compiled.

use std::sync::Arc;

use super::Merge;
use crate::attention::Pipeline;
use crate::buffers::first_bound;
use crate::kernel::{Constant, Module, Slot, check_loops, compose, shader};
use crate::plan::{check_binding, check_groups_and_uniforms, check_module, fold};
use crate::scope::{Later, Now, Scope};
use crate::{Attention, Dispatch, Element, Error, Operand};

/// A merge made ready for one device.
#[derive(Clone, Debug)]
pub struct MergePlan {
    pub(super) attention: Attention,
    pub(super) merge: Merge,
    /// `None` if there is nothing to compute.
    pub(super) step: Option<(Arc<Pipeline>, [u32; 3])>,
    pub(super) groups: u32,
}

impl Attention {
    /// Validates a merge, checks the device's limits, and compiles its kernel if no earlier plan
    /// has.
    ///
    /// # Errors
    /// What [`Merge::validate`] finds; [`Error::Stride`] for 16-bit results at odd places;
    /// [`Error::Limit`]; [`Error::Device`].
    pub fn plan_merge(&self, merge: &Merge) -> Result<MergePlan, Error> {
        self.plan_merge_in(merge, &mut Now)
    }

    /// As [`Attention::plan_merge`], and waits for what wgpu has to say of a new pipeline.
    ///
    /// # Errors
    /// As [`Attention::plan_merge`].
    pub async fn plan_merge_async(&self, merge: &Merge) -> Result<MergePlan, Error> {
        let mut later = Later::default();
        let plan = self.plan_merge_in(merge, &mut later)?;
        self.settle(later).await.map(|()| plan)
    }

    fn plan_merge_in(&self, merge: &Merge, scope: &mut impl Scope) -> Result<MergePlan, Error> {
        merge.validate()?;
        merge.check_packed_output()?;
        let limits = self.limits();
        check_groups_and_uniforms(Slot::PartsLse, limits)?;
        let (need, got) = (Slot::PartsLse as u64 + 1, limits.max_bindings_per_bind_group.into());
        if need > got {
            return Err(Error::Limit { what: "max_bindings_per_bind_group", need, got });
        }
        for operand in merge.operands() {
            let bytes = merge.bytes(operand).saturating_sub(self.first_bound(merge, operand));
            check_binding(operand.name(), bytes, limits)?;
        }
        // A row's threads: one a quad, as far as a workgroup goes.
        let most = THREADS
            .min(limits.max_compute_invocations_per_workgroup)
            .min(limits.max_compute_workgroup_size_x);
        let threads = 1 << most.max(1).ilog2();
        let quads = merge.shape().value_dim.div_ceil(4);
        let row_threads = if quads < threads { quads.next_power_of_two() } else { threads };
        let module = module(merge, threads, row_threads);
        check_module(&module, limits)?;
        let counted = u64::from(merge.parts()) + u64::from(merge.accumulates()) + 1;
        let trips = u64::from(quads.div_ceil(row_threads));
        check_loops(2 * counted + trips * (1 + counted) + 1, self.loop_limit())?;
        let groups = (merge.rows() as u64).div_ceil((threads / row_threads).into());
        let mut step = None;
        if groups > 0 {
            let grid = fold(groups, groups, limits.max_compute_workgroups_per_dimension)?;
            step = Some((self.pipeline(module, scope)?, grid));
        }
        let (attention, merge) = (self.clone(), merge.clone());
        Ok(MergePlan { attention, merge, step, groups: groups as u32 })
    }

    /// The byte at which an operand's binding begins.
    pub(super) fn first_bound(&self, merge: &Merge, operand: Operand) -> u64 {
        match operand {
            Operand::Tables => 0,
            _ if merge.elements(operand) == 0 => 0,
            _ => {
                let unit = u64::from(merge.element_of(operand).bytes());
                first_bound(unit * u64::from(merge.layout_of(operand).offset), self.limits())
            }
        }
    }
}

/// Invocations of a workgroup, where the device has as many.
const THREADS: u32 = 64;

fn module(merge: &Merge, threads: u32, row_threads: u32) -> Module {
    let value_dim = merge.shape().value_dim;
    let constants = [
        (Constant::VALUE_DIM, value_dim),
        (Constant::VALUE_QUADS, value_dim.div_ceil(4)),
        (Constant::ROW_THREADS, row_threads),
        (Constant::MERGE_ROWS, threads / row_threads),
    ];
    let mut files =
        vec![shader!("problem/strides"), shader!("merge/states"), shader!("output/weight")];
    files.extend(match merge.element_of(Operand::O) {
        // `validate` has refused int8.
        Element::F32 | Element::Int8 => {
            [shader!("operand/queries_f32"), shader!("element/scatter_words")].to_vec()
        }
        Element::F16 => [
            shader!("element/element_f16"),
            shader!("operand/queries_f16"),
            shader!("element/scatter_pairs"),
        ]
        .to_vec(),
        Element::Bf16 => [
            shader!("element/element_bf16"),
            shader!("operand/queries_bf16"),
            shader!("element/scatter_pairs"),
        ]
        .to_vec(),
    });
    let mut slots = vec![Slot::Problem, Slot::O, Slot::Lse];
    files.push(shader!("output/lse_buffer"));
    if merge.is_in_place() {
        files.push(shader!("merge/states_in_place"));
    } else {
        slots.extend([Slot::Parts, Slot::PartsLse]);
        files.extend([
            shader!("merge/states_buffers"),
            match merge.accumulates() {
                true => shader!("merge/states_held"),
                false => shader!("merge/states_fresh"),
            },
        ]);
    }
    if merge.has_sinks() {
        slots.push(Slot::Tables);
        files.extend([shader!("problem/tables"), shader!("output/sinks_tables")]);
    } else {
        files.push(shader!("output/sinks_none"));
    }
    files.push(shader!("merge_states"));
    Module {
        name: "merge_states",
        wgsl: compose("", &constants, &files),
        slots,
        threads,
        workgroup_bytes: 0,
    }
}

impl MergePlan {
    /// What this plan will do; nothing if there are no rows.
    pub fn describe(&self) -> Option<Dispatch> {
        self.step.as_ref().map(|(pipeline, grid)| Dispatch::new(pipeline, *grid))
    }

    /// The merge this plan does.
    pub fn merge(&self) -> &Merge {
        &self.merge
    }
}
