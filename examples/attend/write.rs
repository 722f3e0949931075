//! Results into files: whole, or not at all.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use safetensors::tensor::TensorView;

use super::attend::Made;

/// Where results go, under their inputs' names.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes the folder, after it is sure that no file would be written twice or be an input.
    pub fn open(folder: &Path, inputs: &[PathBuf]) -> Result<Folder, String> {
        let names = inputs.iter().filter_map(|input| input.file_name());
        let targets: Vec<_> = names.map(|name| folder.join(name)).collect();
        let mut once = HashSet::new();
        if let Some(twice) = targets.iter().find(|&target| !once.insert(target)) {
            return Err(format!("{}: the result of two files", twice.display()));
        }
        let there = |path: &PathBuf| path.canonicalize().ok(); // Else it is no file yet.
        let inputs: HashSet<_> = inputs.iter().filter_map(there).collect();
        if let Some(input) = targets.iter().find(|&t| there(t).is_some_and(|t| inputs.contains(&t)))
        {
            return Err(format!("{}: a result here would replace an input", input.display()));
        }
        let made = fs::create_dir_all(folder);
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Folder(folder.into()))
    }

    /// One file's results: another file beside it first, which then takes its name.
    pub fn write(&self, input: &Path, made: &[&Made]) -> Result<(), String> {
        let target = self.0.join(input.file_name().unwrap_or(OsStr::new("out.safetensors")));
        let written = bytes(made).and_then(|bytes| self.replace(&target, &bytes));
        written.map_err(|why| format!("{}: {why}", target.display()))
    }

    fn replace(&self, target: &Path, bytes: &[u8]) -> Result<(), String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let own = format!(".attend-{}-{}", std::process::id(), now.as_nanos());
        let unfinished = Unfinished(self.0.join(own));
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).open(&unfinished.0)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&unfinished.0, target)
        };
        write().map_err(|error| error.to_string())
    }
}

/// A file that is gone in the end, unless it took another name.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // It took its name: nothing to remove.
    }
}

fn bytes(made: &[&Made]) -> Result<Vec<u8>, String> {
    let mut views = Vec::new();
    for tensor in made.iter().map(|made| made.tensor()) {
        let view = TensorView::new(tensor.dtype, tensor.shape.to_vec(), tensor.data);
        views.push((tensor.name, view.map_err(|error| error.to_string())?));
    }
    safetensors::serialize(views, None).map_err(|error| error.to_string())
}
