//! A merge's buffers, checked and bound: what is recorded.

use super::MergePlan;
use crate::buffers::{Need, Range, Recording, encodes, uniform_buffer};
use crate::kernel::Slot;
use crate::scope::{Later, Now, Scope};
use crate::uniform::Strides;
use crate::{Buffers, Error, Operand};

/// A merge bound to buffers, ready to be recorded any number of times.
#[derive(Clone, Debug)]
pub struct MergeBound {
    recording: Recording,
}

/// `Merge` of states.wgsl.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
struct MergeUniform {
    parts: Strides,
    parts_lse: Strides,
    o: Strides,
    lse: Strides,
    part_stride: u32,
    part_lse_stride: u32,
    part_count: u32,
    q_heads: u32,
    q_len: u32,
    rows: u32,
    groups: u32,
    sinks: u32,
}

/// Bytes that stand for parts there are none of.
const NOTHING: u64 = 16;

impl MergePlan {
    /// Checks the buffers and binds them: [`Operand::Parts`], [`Operand::PartsLse`]; O and LSE
    /// unless in place; [`Operand::Tables`] with sinks.
    ///
    /// # Errors
    /// As [`Plan::bind`](crate::Plan::bind).
    pub fn bind(&self, buffers: Buffers<'_>) -> Result<MergeBound, Error> {
        self.bind_in(&buffers, &mut Now)
    }

    /// As [`MergePlan::bind`], and waits for what wgpu has to say.
    ///
    /// # Errors
    /// As [`Plan::bind`](crate::Plan::bind).
    pub async fn bind_async(&self, buffers: Buffers<'_>) -> Result<MergeBound, Error> {
        let mut later = Later::default();
        let bound = self.bind_in(&buffers, &mut later)?;
        later.outcome().await.map(|()| bound)
    }

    fn bind_in(&self, buffers: &Buffers<'_>, scope: &mut impl Scope) -> Result<MergeBound, Error> {
        let merge = &self.merge;
        let need = |operand: Operand| Need {
            written: merge.writes(operand),
            ..Need::new(operand, merge.bytes(operand), merge.element_of(operand).bytes())
        };
        let needs: Vec<_> = merge.operands().into_iter().map(need).collect();
        buffers.check(&needs).map_err(|error| match error {
            Error::Overlap { operand, other, .. } => {
                let need = "a buffer of its own, or Merge::in_place for the result over part 0";
                Error::Overlap { operand, other, need }
            }
            error => error,
        })?;
        let Some((pipeline, grid)) = &self.step else {
            return Ok(MergeBound { recording: Recording::default() });
        };
        let device = self.attention.device();
        let uniform = self.uniform();
        let uniforms =
            scope.run(device, || uniform_buffer(device, bytemuck::bytes_of(&uniform)))??;
        let nothing = scope.run(device, || {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("wgpu-attention nothing"),
                size: NOTHING,
                usage: wgpu::BufferUsages::STORAGE,
                mapped_at_creation: false,
            })
        })?;
        let range = |slot: Slot| {
            let Some(operand) = self.bound_at(slot) else {
                let size = size_of::<MergeUniform>() as u64;
                return Range { buffer: &uniforms, offset: 0, size };
            };
            let (bytes, offset) = (merge.bytes(operand), self.first_bound(operand));
            match buffers.get(operand) {
                Some(buffer) if bytes > offset => Range { buffer, offset, size: bytes - offset },
                _ => Range { buffer: &nothing, offset: 0, size: NOTHING },
            }
        };
        let dispatch = scope.run(device, || pipeline.dispatch(device, *grid, range))?;
        Ok(MergeBound { recording: Recording(vec![dispatch]) })
    }

    /// The operand that a storage slot binds.
    fn bound_at(&self, slot: Slot) -> Option<Operand> {
        Some(match slot {
            Slot::O if self.merge.is_in_place() => Operand::Parts,
            Slot::Lse if self.merge.is_in_place() => Operand::PartsLse,
            Slot::O => Operand::O,
            Slot::Lse => Operand::Lse,
            Slot::Parts => Operand::Parts,
            Slot::PartsLse => Operand::PartsLse,
            Slot::Tables => Operand::Tables,
            _ => return None,
        })
    }

    /// In bytes.
    fn first_bound(&self, operand: Operand) -> u64 {
        self.attention.first_bound(&self.merge, operand)
    }

    fn uniform(&self) -> MergeUniform {
        let merge = &self.merge;
        let strides = |slot: Slot| match self.bound_at(slot) {
            Some(operand) if merge.elements(operand) > 0 => {
                let unit = u64::from(merge.element_of(operand).bytes());
                let before = self.first_bound(operand) / unit;
                Strides::new(merge.layout_of(operand), before as u32)
            }
            _ => Strides::default(),
        };
        let shape = merge.shape();
        MergeUniform {
            parts: strides(Slot::Parts),
            parts_lse: strides(Slot::PartsLse),
            o: strides(Slot::O),
            lse: strides(Slot::Lse),
            part_stride: merge.stride_of(Operand::Parts),
            part_lse_stride: merge.stride_of(Operand::PartsLse),
            part_count: merge.parts(),
            q_heads: shape.q_heads,
            q_len: shape.q_len,
            rows: merge.rows() as u32,
            groups: self.groups,
            sinks: 0,
        }
    }
}

encodes!(MergeBound, "Records the dispatch into a pass.");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::shader;
    use crate::uniform::tests::{offsets, wgsl};

    #[test]
    fn uniform_equals_the_shader() {
        let text = shader!("problem/strides").text.to_string() + shader!("merge/states").text;
        assert_eq!(
            wgsl(&text, "Merge"),
            offsets!(MergeUniform: parts parts_lse o lse part_stride part_lse_stride part_count
                q_heads q_len rows groups sinks)
        );
    }
}
