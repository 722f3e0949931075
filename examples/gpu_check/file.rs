//! The report's files, written again after each line: a run that is cut short leaves what it has.

use std::fs;
use std::path::{Path, PathBuf};

use super::report::Report;

pub struct Files(PathBuf);

impl Files {
    /// Makes the folder, and is sure that it can be written.
    pub fn open(folder: &Path, report: &Report) -> Result<Files, String> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let files = Files(folder.into());
        files.write(report)?;
        Ok(files)
    }

    pub fn write(&self, report: &Report) -> Result<(), String> {
        let json = serde_json::to_string_pretty(&report.json()).map_err(|e| e.to_string())?;
        self.replace("gpu-check.md", &report.markdown())?;
        self.replace("gpu-check.json", &(json + "\n"))
    }

    /// Whole, or as it was.
    fn replace(&self, name: &str, text: &str) -> Result<(), String> {
        let [unfinished, target] = [format!(".{name}.new"), name.into()].map(|n| self.0.join(n));
        let written = fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, &target));
        written.map_err(|error| format!("{}: {error}", target.display()))
    }
}
