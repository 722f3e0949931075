//! The uniform structs of `problem.wgsl` and `lengths.wgsl`, as Rust lays them out.

use crate::plan::{Inner, Step};
use crate::problem::Layout;
use crate::{Error, Operand, Problem};

/// `Problem` of problem.wgsl.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct ProblemUniform {
    pub q: Strides,
    pub k: Strides,
    pub v: Strides,
    pub o: Strides,
    pub lse: Strides,
    pub bias: Strides,
    pub mask: Strides,
    pub scores: Strides,
    pub weights: Strides,
    pub bias_key: u32,
    pub mask_key: u32,
    pub q_heads: u32,
    pub group_heads: u32,
    pub row_group: u32,
    pub q_len: u32,
    pub kv_len: u32,
    pub scale: f32,
    pub softcap: f32,
    pub query_tiles: u32,
    pub first_tile: u32,
    pub tiles: u32,
    pub split_keys: u32,
    pub splits: u32,
    pub groups: u32,
    pub sequences: u32,
    pub q_lens: u32,
    pub kv_lens: u32,
    pub cu_seqlens_q: u32,
    pub cu_seqlens_kv: u32,
    pub slopes: u32,
    pub sinks: u32,
    pub zero: u32,
}

/// `Strides` of problem.wgsl, in elements.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct Strides {
    pub offset: u32,
    pub batch: u32,
    pub head: u32,
    pub token: u32,
}

/// `Lengths` of lengths.wgsl.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct LengthsUniform {
    pub query_count: u32,
    pub key_count: u32,
    pub band_low: i32,
    pub band_high: i32,
    pub shift: i32,
    pub relative: u32,
}

impl ProblemUniform {
    /// Of kernels that move rows: strides and counts of Q, K, V and O.
    pub fn rows(problem: &Problem, first_bound: impl Fn(Operand) -> u32) -> Self {
        let strides = |operand: Operand| match problem.elements(operand) {
            0 => Strides::default(),
            _ => Strides::new(problem.layout_of(operand), first_bound(operand)),
        };
        let shape = problem.shape;
        ProblemUniform {
            q: strides(Operand::Q),
            k: strides(Operand::K),
            v: strides(Operand::V),
            o: strides(Operand::O),
            q_heads: shape.q_heads,
            group_heads: shape.q_heads / shape.kv_heads,
            q_len: shape.q_len,
            kv_len: shape.kv_len,
            ..ProblemUniform::default()
        }
    }

    /// Of one step. `first_bound` is the element at which an operand's binding begins.
    pub fn new(
        inner: &Inner,
        step: &Step,
        first_bound: impl Fn(Operand) -> u32,
    ) -> Result<Self, Error> {
        let problem = &inner.problem;
        let shape = problem.shape;
        let strides = |operand: Operand| match operand {
            // A stored matrix is contiguous from the first element of scratch.
            Operand::Scratch => {
                Strides::new(Layout::head_major(shape.q_heads, shape.q_len, shape.kv_len), 0)
            }
            _ if problem.elements(operand) == 0 => Strides::default(),
            _ => Strides::new(problem.layout_of(operand), first_bound(operand)),
        };
        let bias = problem.bias_layout()?.filter(|_| problem.elements(Operand::Bias) > 0);
        let bias_strides = bias.map_or(Strides::default(), |b| Strides {
            offset: b.offset - first_bound(Operand::Bias),
            batch: b.batch,
            head: b.head,
            token: b.query,
        });
        let mask = problem.mask_bits()?.filter(|_| problem.elements(Operand::Mask) > 0);
        let mask_strides = mask.map_or(Strides::default(), |m| Strides {
            offset: m.offset / 32 - first_bound(Operand::Mask),
            batch: m.batch / 32,
            head: m.head / 32,
            token: m.query / 32,
        });
        let table =
            |operand: Operand| problem.table(operand).map_or(NOWHERE, |range| range.start as u32);
        Ok(ProblemUniform {
            q: strides(Operand::Q),
            k: strides(Operand::K),
            v: strides(Operand::V),
            o: strides(Operand::O),
            lse: strides(Operand::Lse),
            bias: bias_strides,
            mask: mask_strides,
            scores: strides(inner.variant.scores_in),
            weights: strides(inner.variant.weights_in),
            bias_key: bias.map_or(0, |b| b.key),
            mask_key: mask.map_or(0, |m| m.key),
            q_heads: shape.q_heads,
            group_heads: shape.q_heads / shape.kv_heads,
            row_group: inner.variant.row_group,
            q_len: shape.q_len,
            kv_len: shape.kv_len,
            scale: problem.scale_value(),
            // Below the smallest normal number some devices see 0, which means none.
            softcap: match problem.softcap_value() {
                0.0 => 0.0,
                softcap => softcap.max(f32::MIN_POSITIVE),
            },
            query_tiles: inner.query_tiles(),
            first_tile: step.first_tile,
            tiles: step.tiles,
            split_keys: inner.split_keys,
            splits: inner.variant.splits,
            groups: step.groups,
            sequences: problem.sequences().unwrap_or(0),
            q_lens: table(Operand::QLens),
            kv_lens: table(Operand::KvLens),
            cu_seqlens_q: table(Operand::CuSeqlensQ),
            cu_seqlens_kv: table(Operand::CuSeqlensKv),
            slopes: table(Operand::Slopes),
            sinks: table(Operand::Sinks),
            zero: 0,
        })
    }
}

/// `NOWHERE` of sequences_lens.wgsl.
const NOWHERE: u32 = u32::MAX;

/// `FURTHEST` of lengths.wgsl.
const FURTHEST: i32 = 1 << 30;

impl LengthsUniform {
    pub fn new(problem: &Problem, q_len: u32, kv_len: u32) -> Result<Self, Error> {
        let [low, high, shift] = problem.band_limits(q_len, kv_len)?;
        // A shift of a sequence's own is added on the device: sums must stay in range there.
        let (band_low, band_high, shift) = (low.max(-FURTHEST), high.min(FURTHEST - 1), shift);
        let relative = problem.has_relative_shift().into();
        let (query_count, key_count) = (q_len, kv_len);
        Ok(LengthsUniform { query_count, key_count, band_low, band_high, shift, relative })
    }
}

impl Strides {
    /// A layout whose first `before` elements are not bound.
    pub fn new(layout: Layout, before: u32) -> Strides {
        let Layout { offset, batch, head, token } = layout;
        Strides { offset: offset - before, batch, head, token }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use wgpu::naga;

    /// Name and offset of every member of a WGSL struct, and its size.
    pub fn wgsl(source: &str, name: &str) -> (Vec<(String, u32)>, u32) {
        let module = naga::front::wgsl::parse_str(source).expect("valid WGSL");
        let found = module.types.iter().find(|(_, ty)| ty.name.as_deref() == Some(name));
        let naga::TypeInner::Struct { members, span } = &found.expect("the struct").1.inner else {
            panic!("{name} is no struct")
        };
        let members = members.iter().map(|m| (m.name.clone().expect("a name"), m.offset));
        (members.collect(), *span)
    }

    macro_rules! offsets {
        ($ty:ty: $($field:ident)*) => {
            (
                vec![$((stringify!($field).to_string(), std::mem::offset_of!($ty, $field) as u32)),*],
                size_of::<$ty>() as u32,
            )
        };
    }
    pub(crate) use offsets;

    #[test]
    fn structs_equal_the_shaders() {
        let strides = include_str!("../shaders/problem/strides.wgsl");
        let problem = &format!("{strides}{}", include_str!("../shaders/problem/problem.wgsl"));
        let lengths = include_str!("../shaders/problem/lengths.wgsl");
        assert_eq!(wgsl(strides, "Strides"), offsets!(Strides: offset batch head token));
        assert_eq!(
            wgsl(problem, "Problem"),
            offsets!(ProblemUniform: q k v o lse bias mask scores weights bias_key mask_key q_heads group_heads
                row_group                 q_len kv_len scale softcap query_tiles first_tile tiles split_keys splits groups
                sequences q_lens kv_lens cu_seqlens_q cu_seqlens_kv slopes sinks zero)
        );
        assert_eq!(
            wgsl(&format!("{problem}{lengths}"), "Lengths"),
            offsets!(LengthsUniform: query_count key_count band_low band_high shift relative)
        );
    }
}
