//! A layer on a device: plan, bind, encode. One encoder, one submit.

use super::{ATTENTION, MultiHead, Stages, in_stage};
use crate::buffers::{Need, Recording, begin_pass};
use crate::plan::SCRATCH_ALIGNMENT;
use crate::project::{ProjectionBound, ProjectionPlan};
use crate::scope::{Later, Now, Scope};
use crate::{Attention, Bound, Buffers, Choice, Dispatch, Error, Operand, Plan};

/// A layer made ready for one device.
#[derive(Clone, Debug)]
pub struct MultiHeadPlan {
    layer: MultiHead,
    projections: [ProjectionPlan; 4],
    attention: Plan,
    projected_bytes: u64,
    mixed_bytes: u64,
}

/// A layer bound to buffers, ready to be recorded any number of times.
#[derive(Clone, Debug)]
pub struct MultiHeadBound {
    before: Recording,
    attention: Bound,
    after: ProjectionBound,
}

impl Attention {
    /// Validates a layer, plans its projections and its attention.
    ///
    /// # Errors
    /// What [`MultiHead::validate`] finds; [`Error::Limit`]; [`Error::Device`]. In browsers wgpu
    /// reports the last later: use [`Attention::plan_multi_head_async`].
    pub fn plan_multi_head(&self, layer: &MultiHead) -> Result<MultiHeadPlan, Error> {
        self.plan_multi_head_in(layer, Choice::default(), &mut Now)
    }

    /// As [`Attention::plan_multi_head`], with the method of the attention by hand, and waits for
    /// what wgpu has to say of new pipelines.
    ///
    /// # Errors
    /// As [`Attention::plan_multi_head`].
    pub async fn plan_multi_head_async(
        &self,
        layer: &MultiHead,
        choice: Choice,
    ) -> Result<MultiHeadPlan, Error> {
        let mut later = Later::default();
        let plan = self.plan_multi_head_in(layer, choice, &mut later)?;
        self.settle(later).await.map(|()| plan)
    }

    fn plan_multi_head_in(
        &self,
        layer: &MultiHead,
        choice: Choice,
        scope: &mut impl Scope,
    ) -> Result<MultiHeadPlan, Error> {
        layer.validate()?;
        let Stages { projections, problem, projected_bytes, mixed_bytes } = layer.stages()?;
        let mut plan = |stage: usize| {
            let projection = self.plan_projection_in(&projections[stage], scope);
            projection.map_err(|error| in_stage(error, stage))
        };
        let [q, k, v, o] = [0, 1, 2, 3].map(&mut plan);
        let projections = [q?, k?, v?, o?];
        let attention = Plan::new(self, &problem, choice, scope)?;
        let layer = layer.clone();
        let plan = MultiHeadPlan { layer, projections, attention, projected_bytes, mixed_bytes };
        let got = self.limits().max_buffer_size;
        for (what, need) in [("projected", projected_bytes), ("scratch", plan.scratch_bytes())] {
            if need > got {
                return Err(Error::Limit { what, need, got });
            }
        }
        Ok(plan)
    }
}

impl MultiHeadPlan {
    /// Bytes of the buffer that the caller gives as [`Operand::Projected`].
    pub fn projected_bytes(&self) -> u64 {
        self.projected_bytes
    }

    /// Bytes of the buffer that the caller gives as [`Operand::Scratch`].
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch_base() + self.attention.scratch_bytes()
    }

    fn scratch_base(&self) -> u64 {
        self.mixed_bytes.next_multiple_of(SCRATCH_ALIGNMENT)
    }

    /// What this plan will do, in order: three projections, the attention, the output's projection.
    pub fn describe(&self) -> Vec<Dispatch> {
        let [q, k, v, o] = self.projections.each_ref().map(ProjectionPlan::describe);
        let before = [q, k, v].into_iter().flatten();
        before.chain(self.attention.describe().dispatches).chain(o).collect()
    }

    /// The attention inside, as planned.
    pub fn attention(&self) -> &Plan {
        &self.attention
    }

    /// Checks the buffers and binds them: X, Y, W_Q, W_K, W_V, W_O, [`Operand::Projected`],
    /// [`Operand::Scratch`], and what else the layer has.
    ///
    /// # Errors
    /// As [`Plan::bind`].
    pub fn bind(&self, buffers: Buffers<'_>) -> Result<MultiHeadBound, Error> {
        self.bind_in(&buffers, &mut Now)
    }

    /// As [`MultiHeadPlan::bind`], and waits for what wgpu has to say.
    ///
    /// # Errors
    /// As [`Plan::bind`].
    pub async fn bind_async(&self, buffers: Buffers<'_>) -> Result<MultiHeadBound, Error> {
        let mut later = Later::default();
        let bound = self.bind_in(&buffers, &mut later)?;
        later.outcome().await.map(|()| bound)
    }

    fn bind_in(
        &self,
        buffers: &Buffers<'_>,
        scope: &mut impl Scope,
    ) -> Result<MultiHeadBound, Error> {
        let need = |operand: Operand| Need::new(operand, 4 * self.layer.elements(operand), 4);
        let mut needs: Vec<Need> = self.layer.operands().into_iter().map(need).collect();
        let memory =
            [(Operand::Projected, self.projected_bytes), (Operand::Scratch, self.scratch_bytes())];
        needs.extend(memory.map(|(operand, bytes)| Need::memory(operand, bytes)));
        buffers.check(&needs)?;

        let part = |names: &[(Operand, Operand)]| {
            names
                .iter()
                .fold(Buffers::default(), |part, &(from, to)| part.renamed(buffers, from, to))
        };
        use Operand::{B, Context, Projected, Scratch, W, X, Y};
        let from = if self.layer.context_dim.is_some() { Context } else { X };
        let names = [
            [(X, X), (Operand::Wq, W), (Operand::Bq, B), (Projected, Y)],
            [(from, X), (Operand::Wk, W), (Operand::Bk, B), (Projected, Y)],
            [(from, X), (Operand::Wv, W), (Operand::Bv, B), (Projected, Y)],
        ];
        let mut before = Recording::default();
        for (plan, names) in self.projections.iter().zip(&names) {
            before.0.extend(plan.bind_in(&part(names), scope)?.recording.0);
        }
        let inner = [Operand::Q, Operand::K, Operand::V].map(|operand| (Projected, operand));
        let mut attention = part(&inner);
        for operand in ATTENTION {
            attention = attention.renamed(buffers, operand, operand);
        }
        attention = attention.renamed(buffers, Scratch, Operand::O);
        attention = attention.renamed(buffers, Scratch, Scratch);
        attention.scratch_base = self.scratch_base();
        let attention = crate::bind::bind(&self.attention, &attention, scope)?;
        let mut last = part(&[(Scratch, X), (Operand::Wo, W), (Operand::Bo, B), (Y, Y)]);
        if self.layer.residual {
            last = last.renamed(buffers, X, Operand::Residual);
        }
        let after = self.projections[3].bind_in(&last, scope)?;
        Ok(MultiHeadBound { before, attention, after })
    }
}

impl MultiHeadBound {
    /// Records the layer into a pass. Sets pipeline and bind group 0, and leaves them set.
    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
        self.before.encode(pass);
        self.attention.encode(pass);
        self.after.encode(pass);
    }

    /// Records one labelled pass into an encoder.
    pub fn encode_in(&self, encoder: &mut wgpu::CommandEncoder) {
        self.encode(&mut begin_pass(encoder));
    }

    /// As [`Bound::set_lengths`]: rows of y past `q_len` are b_O (and x, with a residual).
    ///
    /// # Errors
    /// As [`Bound::set_lengths`].
    pub fn set_lengths(&self, queue: &wgpu::Queue, q_len: u32, kv_len: u32) -> Result<(), Error> {
        self.attention.set_lengths(queue, q_len, kv_len)
    }
}
