//! One per device: what the device can do, and the pipelines compiled so far.

#[cfg(not(target_family = "wasm"))]
mod candidates;
mod choice;
mod choice_text;
#[cfg(not(target_family = "wasm"))]
mod class;
mod loop_limit;
mod matrices;
mod options;
mod pipeline;
#[cfg(not(target_family = "wasm"))]
mod tuning;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::kernel::Module;
use crate::{Error, Plan, Problem, scope};
pub use choice::{Choice, Method};
#[cfg(not(target_family = "wasm"))]
pub use class::Class;
pub use loop_limit::LoopLimit;
pub(crate) use matrices::{FEATURES as MATRIX_FEATURES, Matrices};
pub use options::Options;
pub(crate) use pipeline::Pipeline;
#[cfg(not(target_family = "wasm"))]
pub use tuning::Tuning;

/// Plans attention for one device and keeps its pipelines. Cloning shares them.
///
/// Nothing is compiled until a plan asks for it. The device may be the caller's own, with
/// whatever limits and features it has: plans stay within [`wgpu::Device::limits`].
#[derive(Clone, Debug)]
pub struct Attention {
    shared: Arc<Shared>,
    loop_limit: Option<u32>,
    excluded: options::Excluded,
    #[cfg(not(target_family = "wasm"))]
    tuning: Tuning,
}

struct Shared {
    device: wgpu::Device,
    limits: wgpu::Limits,
    /// Lanes of a subgroup, if shaders can use them and there is one size only.
    subgroup: Option<u32>,
    /// Rows of the matrices that shaders multiply, and the most lanes of a subgroup.
    matrix: Option<[u32; 2]>,
    /// See [`Options::fused_multiply_add`].
    fused_multiply_add: bool,
    /// Mesa's software adapter runs the shaders.
    llvmpipe: bool,
    pipelines: Mutex<HashMap<String, Entry>>,
    /// The caller's, on disk.
    #[cfg(not(target_family = "wasm"))]
    pipeline_cache: Option<wgpu::PipelineCache>,
}

/// One lock a key: compiling one module holds up only those who want the same one.
/// The flag: whether wgpu's word on it is known or awaited.
type Entry = Arc<Mutex<Option<(Arc<Pipeline>, bool)>>>;

/// Without the text of every kernel.
impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("device", &self.device).finish_non_exhaustive()
    }
}

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
            subgroup: (device.features().contains(wgpu::Features::SUBGROUP)
                && info.subgroup_min_size == info.subgroup_max_size)
                .then_some(info.subgroup_max_size),
            matrix: (device.features().contains(MATRIX_FEATURES))
                .then(|| options.matrices.best().map(|size| [size, info.subgroup_max_size]))
                .flatten(),
            fused_multiply_add: options
                .fused_multiply_add
                .unwrap_or(info.device_type != wgpu::DeviceType::Cpu),
            llvmpipe: info.name.starts_with("llvmpipe"),
            pipelines: Mutex::default(),
            #[cfg(not(target_family = "wasm"))]
            pipeline_cache: options.pipeline_cache,
        };
        Attention {
            shared: Arc::new(shared),
            loop_limit: options.loop_limit.resolve(&info),
            excluded: options.excluded,
            #[cfg(not(target_family = "wasm"))]
            tuning: options.tuning,
        }
    }

    /// The same, with the same pipelines, but no plan uses this method: see [`Options::without`].
    #[must_use]
    pub fn without(self, method: Method) -> Attention {
        Attention { excluded: self.excluded.with(method), ..self }
    }

    /// The same, with the same pipelines, with these choices: see [`Options::tuning`].
    #[cfg(not(target_family = "wasm"))]
    #[must_use]
    pub fn with_tuning(self, tuning: Tuning) -> Attention {
        Attention { tuning, ..self }
    }

    /// The same, with no pipelines yet, those to come by way of this cache: see
    /// [`Options::pipeline_cache`].
    #[cfg(not(target_family = "wasm"))]
    #[must_use]
    pub fn with_pipeline_cache(self, cache: wgpu::PipelineCache) -> Attention {
        let Shared { device, limits, .. } = &*self.shared;
        let shared = Shared {
            device: device.clone(),
            limits: limits.clone(),
            pipelines: Mutex::default(),
            pipeline_cache: Some(cache),
            ..*self.shared
        };
        Attention { shared: Arc::new(shared), ..self }
    }

    /// What was measured to be best.
    #[cfg(not(target_family = "wasm"))]
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// Validates the problem, takes the kernels and tiles of [`Options::tuning`] or chooses some,
    /// checks the device's limits, and compiles what no earlier plan has compiled.
    ///
    /// # Errors
    /// What [`Problem::validate`] finds; [`Error::Stride`] for 16-bit output with an odd stride or
    /// offset, and for a mask with a row that does not start on a word; [`Error::Limit`];
    /// [`Error::Excluded`] if [`Options::without`] leaves no method; [`Error::Device`] if wgpu refuses
    /// a pipeline. In browsers wgpu reports that later: use [`Attention::plan_async`].
    pub fn plan(&self, problem: &Problem) -> Result<Plan, Error> {
        self.plan_with(problem, Choice::default())
    }

    /// As [`Attention::plan`], with method and tile by hand. A choice that is not the default wins
    /// over [`Options::tuning`].
    ///
    /// # Errors
    /// As [`Attention::plan`]; [`Error::Excluded`] for a method of [`Options::without`];
    /// [`Error::Unexpected`] for scores or weights wanted of a fused kernel, which never forms them;
    /// [`Error::Size`] for a tile that the method does not have, and
    /// [`Error::Limit`] for [`Method::Broadcast`] on a device without `Features::SUBGROUP` or with
    /// subgroups of several sizes, and for [`Method::Matrix`] where device or problem do not have
    /// what it takes.
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

    pub(crate) fn allows(&self, method: Method) -> bool {
        !self.excluded.contains(method)
    }

    /// The choice that was measured to be best for a valid problem.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn tuned(&self, problem: &Problem) -> Option<Choice> {
        // Most have no table: for them this costs nothing.
        if self.tuning.is_empty() { None } else { self.tuning.get(&Class::of_valid(problem)) }
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn pipeline_cache(&self) -> Option<&wgpu::PipelineCache> {
        self.shared.pipeline_cache.as_ref()
    }

    #[cfg(target_family = "wasm")]
    pub(crate) fn pipeline_cache(&self) -> Option<&wgpu::PipelineCache> {
        None
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

    /// Rows of the matrices that shaders can multiply, and the most lanes of a subgroup.
    ///
    /// # Errors
    /// [`Error::Limit`] if they cannot.
    #[inline(always)]
    pub(crate) fn matrix(&self) -> Result<[u32; 2], Error> {
        if cfg!(target_family = "wasm") {
            return Err(Error::Limit { what: "matrix units", need: 1, got: 0 });
        }
        let enabled = self.shared.device.features().contains(MATRIX_FEATURES);
        let what = if enabled { matrices::SIZES_MISSING } else { matrices::FEATURES_MISSING };
        self.shared.matrix.ok_or(Error::Limit { what, need: 1, got: 0 })
    }

    /// How much longer than Mesa 22's the adapter's compiler takes over a large body.
    pub(crate) fn compile_cost(&self) -> u64 {
        if self.loop_limit().is_some() { 1 } else { 8 }
    }

    pub(crate) fn has_fused_multiply_add(&self) -> bool {
        self.shared.fused_multiply_add
    }

    /// A texture's loads are far faster than a buffer's on Mesa's software adapter.
    pub(crate) fn prefers_textures(&self) -> bool {
        self.shared.llvmpipe
    }

    /// Threads of `decode`: what such an adapter runs at once, or what suits the others.
    pub(crate) fn lanes(&self) -> u32 {
        if self.prefers_textures() { 8 } else { 32.min(self.limits().max_compute_workgroup_size_x) }
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
        let pipeline = scope.run(self.device(), || Arc::new(Pipeline::compile(self, module)))?;
        *entry = Some((pipeline.clone(), !unheard));
        Ok(pipeline)
    }
}
