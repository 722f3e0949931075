//! One per device: what the device can do, and the pipelines compiled so far.

mod pipeline;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::kernel::Module;
use crate::plan::FEW_ROWS;
use crate::{Error, Plan, Problem, Tile, scope, texture};
pub(crate) use pipeline::Pipeline;

/// Query rows up to which `decode` beats `broadcast` with the keys in a texture already.
const FEW_ROWS_OF_TEXTURE: u32 = 4;
/// Mesa keeps rows in registers only if loops over their quads have at most 32 trips.
const MOST_UNROLLED_DIM: u32 = 4 * 32;

/// How a plan computes attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// Three kernels, `scores`, `softmax`, `values`, with the scores stored between them.
    Staged,
    /// One kernel, `flash`, with an online softmax; memory grows with q_len, not q_len * kv_len.
    Flash,
    /// One kernel, `broadcast`, for software adapters: each lane of a subgroup holds query rows, and
    /// lanes hand each other keys and values. No workgroup memory. Needs `Features::SUBGROUP`.
    Broadcast,
    /// One kernel, `decode`, for few query rows: threads sweep keys of their own, with an online
    /// softmax, and merge at the end.
    Decode,
}

/// A plan's method and tile by hand, for tests and tuning. The default leaves both to the planner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Choice {
    /// Method; `None`: staged if scores or weights are wanted, else one of the fused ones.
    pub method: Option<Method>,
    /// The fused kernel's tile; `None`: from the table.
    pub tile: Option<Tile>,
    /// Whether `broadcast` first copies K and V into a texture; `None`: where loads from one are
    /// cheaper. Those of a cache stay where they are.
    pub keys_in_texture: Option<bool>,
}

impl Choice {
    /// This method, the table's tile.
    pub const fn method(method: Method) -> Choice {
        Choice { method: Some(method), tile: None, keys_in_texture: None }
    }

    /// The same with this tile.
    #[must_use]
    pub const fn with_tile(self, tile: Tile) -> Choice {
        Choice { tile: Some(tile), ..self }
    }

    /// The same, and whether `broadcast` copies K and V into a texture.
    #[must_use]
    pub const fn with_keys_in_texture(self, yes: bool) -> Choice {
        Choice { keys_in_texture: Some(yes), ..self }
    }

    /// The fused kernel with this tile.
    pub const fn tile(tile: Tile) -> Choice {
        Choice::method(Method::Flash).with_tile(tile)
    }
}

/// How many loop iterations one invocation may make in all, nested loops included.
///
/// Mesa's llvmpipe before version 23 ends every loop silently once an invocation has made 65,535
/// iterations, and results are wrong without any error. Where a limit holds, the planner splits
/// the keys over workgroups and merges the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoopLimit {
    /// From what the device says of its adapter and driver.
    #[default]
    Auto,
    /// No limit. Wrong results on the drivers above.
    Unlimited,
    /// This many iterations.
    Iterations(u32),
}

impl LoopLimit {
    fn resolve(self, info: &wgpu::AdapterInfo) -> Option<u32> {
        match self {
            LoopLimit::Unlimited => None,
            LoopLimit::Iterations(most) => Some(most),
            LoopLimit::Auto => {
                // "Mesa 22.3.6 (LLVM ..)" on Vulkan, "4.5 (Core Profile) Mesa 22.3.6" on GL
                let version = info.driver_info.split("Mesa ").nth(1).unwrap_or("");
                let major = version.split('.').next().and_then(|n| n.parse::<u32>().ok());
                let old = info.name.starts_with("llvmpipe") && major.is_none_or(|major| major < 23);
                old.then_some(65_535)
            }
        }
    }
}

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
    pub(crate) fn lanes_of_subgroup(&self) -> Result<u32, Error> {
        let what = "subgroups of one size, with the feature SUBGROUP";
        self.shared.subgroup.ok_or(Error::Limit { what, need: 1, got: 0 })
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

    /// The best fused kernel: on software adapters, where a load from a texture is cheap and one from
    /// workgroup memory is not, those without workgroup memory.
    pub(crate) fn fused(&self, problem: &Problem) -> Method {
        let in_texture = problem.cache().map(|cache| cache.in_texture(self));
        // Copying keys into a texture first takes as long as some rows more.
        let few = if in_texture == Some(true) { FEW_ROWS_OF_TEXTURE } else { FEW_ROWS };
        let pack = || texture::check(problem.packed_texels(), self.limits()).is_ok();
        let small = problem.shape.head_dim.max(problem.shape.value_dim) <= MOST_UNROLLED_DIM;
        if !self.prefers_textures() {
            Method::Flash
        } else if problem.riding_rows() <= few {
            Method::Decode
        } else if small && self.shared.subgroup.is_some() && in_texture.unwrap_or_else(pack) {
            Method::Broadcast
        } else if in_texture == Some(true) {
            Method::Decode
        } else {
            Method::Flash
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_llvmpipe_is_known() {
        let mut info = wgpu::AdapterInfo::new(wgpu::DeviceType::Cpu, wgpu::Backend::Vulkan);
        let mut limit = |name: &str, driver_info: &str| {
            (info.name, info.driver_info) = (name.into(), driver_info.into());
            LoopLimit::Auto.resolve(&info)
        };
        assert_eq!(
            limit("llvmpipe (LLVM 15.0.6, 256 bits)", "Mesa 22.3.6 (LLVM 15.0.6)"),
            Some(65_535)
        );
        assert_eq!(limit("llvmpipe (LLVM 19.1.7, 256 bits)", "Mesa 25.0.7 (LLVM 19.1.7)"), None);
        assert_eq!(limit("llvmpipe", "4.5 (Core Profile) Mesa 25.0.7"), None);
        assert_eq!(limit("llvmpipe", "something new"), Some(65_535));
        assert_eq!(limit("AMD Radeon", "Mesa 22.3.6"), None);
    }
}
