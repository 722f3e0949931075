//! What is printed of each result.

use std::path::{Path, PathBuf};

use super::attend::Made;
use super::check::Finding;

/// A line a result.
pub struct Table {
    width: usize,
    checked: bool,
}

impl Table {
    pub fn new(files: &[PathBuf], checked: bool) -> Table {
        let widths = files.iter().map(|file| file.display().to_string().chars().count());
        Table { width: widths.max().unwrap_or(0).max("file".len()), checked }
    }

    pub fn header(&self) -> String {
        let mut line =
            format!("{:w$}  {:7}  {:4}  {:20}", "file", "tensor", "type", "shape", w = self.width);
        if self.checked {
            line += &format!("  {:>8}  {:>8}", "off by", "allowed");
        }
        line.trim_end().into()
    }

    pub fn line(&self, file: &Path, made: &Made, finding: Option<&Finding>) -> String {
        let (file, name) = (file.display().to_string(), made.part.name());
        let (dtype, shape) = (format!("{:?}", made.dtype), format!("{:?}", made.shape));
        let mut line = format!("{file:w$}  {name:7}  {dtype:4}  {shape:20}", w = self.width);
        if let Some(finding) = finding {
            line += &format!("  {:>8.1e}  {:>8.1e}", finding.far.by, finding.allowed);
            if !finding.is_good() {
                line += &format!("  OFF at {}", finding.place);
            }
        }
        line.trim_end().into()
    }
}
