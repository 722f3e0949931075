//! What an attention cannot learn from the device, or should not.

use super::{LoopLimit, Matrices, Method};
#[cfg(not(target_family = "wasm"))]
use crate::Tuning;

/// What an [`Attention`](crate::Attention) cannot learn from the device, or should not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Loop iterations allowed to one invocation.
    pub loop_limit: LoopLimit,
    /// Whether a multiply-add is one instruction and rounded once, as on GPUs; `None`: unless a CPU runs
    /// the shaders. Sums of products take an order that is cheap in the one case, and costs few digits in
    /// the other.
    pub fused_multiply_add: Option<bool>,
    /// Matrix sizes, see [`Options::from_adapter`].
    pub(crate) matrices: Matrices,
    /// Methods that no plan may use, see [`Options::without`].
    pub(crate) excluded: Excluded,
    /// What was measured to be best, see [`Options::tuning`].
    #[cfg(not(target_family = "wasm"))]
    pub(crate) tuning: Tuning,
    /// See [`Options::pipeline_cache`].
    #[cfg(not(target_family = "wasm"))]
    pub(crate) pipeline_cache: Option<wgpu::PipelineCache>,
}

impl Options {
    /// The defaults, and what the adapter says of its matrix units, which its devices do not. A device
    /// uses them with the features `EXPERIMENTAL_COOPERATIVE_MATRIX`, `SHADER_F16` and `SUBGROUP`.
    #[must_use]
    pub fn from_adapter(adapter: &wgpu::Adapter) -> Options {
        Options { matrices: Matrices::of_adapter(adapter), ..Options::default() }
    }

    /// The same, and the device multiplies square matrices of these sizes, f16 in and f32 out; there
    /// are kernels for 8 and 16. For those who know: [`Options::from_adapter`] asks.
    #[must_use]
    pub fn matrices(self, sizes: &[u32]) -> Options {
        Options { matrices: Matrices::of_sizes(sizes), ..self }
    }

    /// The same with another loop limit.
    #[must_use]
    pub fn loop_limit(self, loop_limit: LoopLimit) -> Options {
        Options { loop_limit, ..self }
    }

    /// The same, and a multiply-add is one instruction, or is not.
    #[must_use]
    pub fn fused_multiply_add(self, yes: bool) -> Options {
        Options { fused_multiply_add: Some(yes), ..self }
    }

    /// The same, and no plan uses this method, for instance since it failed
    /// `Gpu::self_test`.
    ///
    /// Where the planner would, it takes the first of flash, broadcast, decode and staged that is
    /// left and fits the device. A [`Choice`](crate::Choice) of the method by hand, and a problem that
    /// nothing left can compute, are [`Error::Excluded`](crate::Error::Excluded).
    #[must_use]
    pub fn without(self, method: Method) -> Options {
        Options { excluded: self.excluded.with(method), ..self }
    }

    /// The same with choices that were measured on this device, for instance by a
    /// `Tuner`: plans by the default [`Choice`](crate::Choice) take the one of their
    /// [`Class`](crate::Class).
    #[cfg(not(target_family = "wasm"))]
    #[must_use]
    pub fn tuning(self, tuning: Tuning) -> Options {
        Options { tuning, ..self }
    }

    /// The same with a pipeline cache of the same device, which pipelines are looked up in and added
    /// to. Needs `Features::PIPELINE_CACHE`, which the caller had to have to make it.
    #[cfg(not(target_family = "wasm"))]
    #[must_use]
    pub fn pipeline_cache(self, cache: wgpu::PipelineCache) -> Options {
        Options { pipeline_cache: Some(cache), ..self }
    }
}

/// A set of methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Excluded(u32);

impl Excluded {
    pub fn with(self, method: Method) -> Excluded {
        Excluded(self.0 | 1 << method as u32)
    }

    pub fn contains(self, method: Method) -> bool {
        self.0 & 1 << method as u32 != 0
    }
}
