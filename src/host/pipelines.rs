//! Compiled pipelines, kept in a file.

use std::fs;
use std::path::{Path, PathBuf};

use super::Gpu;
use super::sealed::{Loaded, header, read, seal, unseal, write};
use crate::Error;
use crate::scope::{Now, Scope};

/// More than all kernels come to.
const MOST_BYTES: u64 = 256 << 20;

/// A pipeline cache of a device and the file that it is kept in, for drivers that keep none of their
/// own.
///
/// ```no_run
/// use wgpu_attention::{Gpu, PipelineFile};
/// # fn main() -> Result<(), wgpu_attention::Error> {
/// let gpu = Gpu::new()?;
/// let (file, loaded) = PipelineFile::open(&gpu, "cache")?;
/// println!("pipelines: {loaded}");
/// let planner = gpu.planner().clone().with_pipeline_cache(file.cache().clone());
/// let gpu = gpu.with_attention(planner);
/// // ... and after the plans:
/// file.save()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct PipelineFile {
    cache: wgpu::PipelineCache,
    path: PathBuf,
    header: String,
}

impl PipelineFile {
    /// Opens a device's file in a folder, and says what came of it; without one the cache begins
    /// empty. The file must be as safe from strangers as the program itself: its checksum finds
    /// accidents, and drivers trust what passes it.
    ///
    /// # Errors
    /// [`Error::Limit`] on a device without `Features::PIPELINE_CACHE`, which only Vulkan has;
    /// [`Error::Device`].
    pub fn open(gpu: &Gpu, folder: impl AsRef<Path>) -> Result<(PipelineFile, Loaded), Error> {
        let device = gpu.device();
        let has = device.features().contains(wgpu::Features::PIPELINE_CACHE);
        let name = wgpu::util::pipeline_cache_key(&device.adapter_info()).filter(|_| has);
        let what = "the feature PIPELINE_CACHE";
        let name = name.ok_or(Error::Limit { what, need: 1, got: 0 })?;
        let path = folder.as_ref().join(name);
        let header = header("pipelines", gpu.planner());
        let bytes = read(&path, MOST_BYTES);
        let (data, loaded) = match bytes.as_ref().map(|bytes| unseal(&header, bytes)) {
            Ok(Ok(data)) => (Some(data), Loaded::Fresh),
            Ok(Err(why)) => (None, why),
            Err(why) => (None, why.clone()),
        };
        // SAFETY: the data came from `PipelineCache::get_data` of a device of this adapter and driver,
        // by `save`: header and checksum say so. What wgpu does not want of it, it leaves out.
        let cache = Now.run(device, || unsafe {
            let label = Some("wgpu-attention");
            let descriptor = wgpu::PipelineCacheDescriptor { label, data, fallback: true };
            device.create_pipeline_cache(&descriptor)
        })?;
        Ok((PipelineFile { cache, path, header }, loaded))
    }

    /// For [`Attention::with_pipeline_cache`](crate::Attention::with_pipeline_cache) or
    /// [`Options::pipeline_cache`](crate::Options::pipeline_cache).
    pub fn cache(&self) -> &wgpu::PipelineCache {
        &self.cache
    }

    /// Where it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what the cache holds now, and makes the folder if it is not there; a file that is there
    /// is replaced as a whole.
    ///
    /// # Errors
    /// [`Error::File`]. What was there before is still there.
    pub fn save(&self) -> Result<(), Error> {
        let data = self.cache.get_data().unwrap_or_default();
        if let Some(folder) = self.path.parent() {
            let failed = |error| Error::File(format!("{}: {error}", folder.display()));
            fs::create_dir_all(folder).map_err(failed)?;
        }
        write(&self.path, &seal(&self.header, &data))
    }
}
