//! One per device: what the device can do, and the pipelines compiled so far.

mod choice;
mod loop_limit;
mod pipeline;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::kernel::Module;
use crate::{Error, Plan, Problem, scope};
pub use choice::{Choice, Method};
pub use loop_limit::LoopLimit;
pub(crate) use pipeline::Pipeline;

/// What an [`Attention`] cannot learn from the device, or should not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Loop iterations allowed to one invocation.
    pub loop_limit: LoopLimit,
}

impl Options {
    /// The same with another loop limit.
    #[must_use]
    pub const fn loop_limit(self, loop_limit: LoopLimit) -> Options {
        Options { loop_limit }
    }
}

/// Plans attention for one device and keeps its pipelines. Cloning shares them.
///
/// Nothing is compiled until a plan asks for it. The device may be the caller's own, with
/// whatever limits and features it has: plans stay within [`wgpu::Device::limits`].
#[derive(Clone, Debug)]
pub struct Attention {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    device: wgpu::Device,
    limits: wgpu::Limits,
    loop_limit: Option<u32>,
    /// Lanes of a subgroup, if shaders can use them and there is one size only.
    subgroup: Option<u32>,
    /// Mesa's software adapter runs the shaders.
    llvmpipe: bool,
    pipelines: Mutex<HashMap<String, Entry>>,
}

/// One lock a key: compiling one module holds up only those who want the same one.
/// The flag: whether wgpu's word on it is known or awaited.
type Entry = Arc<Mutex<Option<(Arc<Pipeline>, bool)>>>;

impl Attention {
    /// For a device; compiles nothing.
    pub fn new(device: &wgpu::Device) -> Attention {
        Attention::with(device, Options::default())
    }

    /// For a device, with options.
    pub fn with(device: &wgpu::Device, options: Options) -> Attention {
        let info = device.adapter_info();
        let shared = Shared {
            device: device.clone(),
            limits: device.limits(),
            loop_limit: options.loop_limit.resolve(&info),
            subgroup: (device.features().contains(wgpu::Features::SUBGROUP)
                && info.subgroup_min_size == info.subgroup_max_size)
                .then_some(info.subgroup_max_size),
            llvmpipe: info.name.starts_with("llvmpipe"),
            pipelines: Mutex::default(),
        };
        Attention { shared: Arc::new(shared) }
    }

    /// Validates the problem, chooses kernels and tiles, checks the device's limits, and compiles
    /// what no earlier plan has compiled.
    ///
    /// # Errors
    /// What [`Problem::validate`] finds; [`Error::Stride`] for 16-bit output with an odd stride or
    /// offset, and for a mask with a row that does not start on a word; [`Error::Limit`];
    /// [`Error::Device`] if wgpu refuses a pipeline. In browsers wgpu reports that later: use
    /// [`Attention::plan_async`].
    pub fn plan(&self, problem: &Problem) -> Result<Plan, Error> {
        self.plan_with(problem, Choice::default())
    }

    /// As [`Attention::plan`], with method and tile by hand.
    ///
    /// # Errors
    /// As [`Attention::plan`]; [`Error::Unexpected`] for scores or weights wanted of a fused kernel,
    /// which never forms them; [`Error::Size`] for a tile that the method does not have, and
    /// [`Error::Limit`] for [`Method::Broadcast`] on a device without `Features::SUBGROUP` or with
    /// subgroups of several sizes.
    pub fn plan_with(&self, problem: &Problem, choice: Choice) -> Result<Plan, Error> {
        Plan::new(self, problem, choice, &mut scope::Now)
    }

    /// As [`Attention::plan_with`], and waits for what wgpu has to say of new pipelines.
    ///
    /// # Errors
    /// As [`Attention::plan_with`].
    pub async fn plan_async(&self, problem: &Problem, choice: Choice) -> Result<Plan, Error> {
        let mut later = scope::Later::default();
        let plan = Plan::new(self, problem, choice, &mut later)?;
        self.settle(later).await.map(|()| plan)
    }

    /// Waits for wgpu's word on new pipelines. If it refuses one, the cache forgets them all, so
    /// that the next plan compiles anew.
    pub(crate) async fn settle(&self, later: scope::Later) -> Result<(), Error> {
        let outcome = later.outcome().await;
        if outcome.is_err() {
            self.lock().clear();
        }
        outcome
    }

    pub(crate) fn device(&self) -> &wgpu::Device {
        &self.shared.device
    }

    pub(crate) fn limits(&self) -> &wgpu::Limits {
        &self.shared.limits
    }

    pub(crate) fn has_f16(&self) -> bool {
        self.shared.device.features().contains(wgpu::Features::SHADER_F16)
    }

    /// Lanes of a subgroup.
    ///
    /// # Errors
    /// [`Error::Limit`] if shaders cannot use them, or do not know how many there will be.
    #[inline(always)]
    pub(crate) fn lanes_of_subgroup(&self) -> Result<u32, Error> {
        let what = "subgroups of one size, with the feature SUBGROUP";
        // wgpu has no subgroups in browsers: what needs them is left out there.
        let lanes = if cfg!(target_family = "wasm") { None } else { self.shared.subgroup };
        lanes.ok_or(Error::Limit { what, need: 1, got: 0 })
    }

    /// How much longer than Mesa 22's the adapter's compiler takes over a large body.
    pub(crate) fn compile_cost(&self) -> u64 {
        if self.loop_limit().is_some() { 1 } else { 8 }
    }

    /// A texture's loads are far faster than a buffer's on Mesa's software adapter.
    pub(crate) fn prefers_textures(&self) -> bool {
        self.shared.llvmpipe
    }

    /// Threads of `decode`: what such an adapter runs at once, or what suits the others.
    pub(crate) fn lanes(&self) -> u32 {
        if self.prefers_textures() { 8 } else { 32.min(self.limits().max_compute_workgroup_size_x) }
    }

    pub(crate) fn loop_limit(&self) -> Option<u32> {
        self.shared.loop_limit
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        self.shared.pipelines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a module's pipeline from the cache, or compiles it. The key is the composed text.
    pub(crate) fn pipeline<S: scope::Scope>(
        &self,
        module: Module,
        scope: &mut S,
    ) -> Result<Arc<Pipeline>, Error> {
        let entry = self.lock().entry(module.wgsl.clone()).or_default().clone();
        let mut entry = entry.lock().unwrap_or_else(PoisonError::into_inner);
        // In browsers wgpu's word on a pipeline comes later. Who awaits it does not take one that
        // was compiled by someone who did not.
        let unheard = cfg!(target_family = "wasm") && S::HASTY;
        match &*entry {
            Some((pipeline, heard)) if *heard || unheard => return Ok(pipeline.clone()),
            _ => {}
        }
        let pipeline =
            scope.run(self.device(), || Arc::new(Pipeline::compile(self.device(), module)))?;
        *entry = Some((pipeline.clone(), !unheard));
        Ok(pipeline)
    }
}
