//! A line of the table: who did a case, and what came of it.

use wgpu_attention::Element;

use super::case::Case;

/// What the card does at most, each measured in this run.
#[derive(Clone, Copy, Default)]
pub struct Peaks {
    /// Operations a second: multiply-adds of f32 in registers.
    pub f32: Option<f64>,
    /// The same of f16.
    pub f16: Option<f64>,
    /// Operations a second: products of f16 matrices, summed in f32.
    pub matrix: Option<f64>,
    /// Bytes a second: reading a large buffer.
    pub read: Option<f64>,
}

impl Peaks {
    /// The better of two measurements, each of which others may have disturbed.
    pub fn best(self, other: Peaks) -> Peaks {
        let better = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
        Peaks {
            f32: better(self.f32, other.f32),
            f16: better(self.f16, other.f16),
            matrix: better(self.matrix, other.matrix),
            read: better(self.read, other.read),
        }
    }
}

/// Seconds of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    pub median: f64,
    pub best: f64,
    /// Calls measured.
    pub calls: u32,
}

/// Whether a GPU's seconds of some calls are of use: some drivers have timestamps in name only. They
/// fill the time that was waited for them all, but for what it takes to submit and to hear of the end.
pub fn fit(seconds: &[f64], waited: f64) -> bool {
    let sum: f64 = seconds.iter().sum();
    seconds.iter().all(|&s| s > 0.0) && sum < 1.1 * waited && sum > 0.5 * (waited - 5e-3)
}

/// The largest error of an answer, and the largest that is right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Error {
    pub found: f64,
    pub allowed: f64,
}

impl Error {
    pub fn is_right(&self) -> bool {
        self.found <= self.allowed // Not so of a NaN.
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its answer checked, if it is ours.
    Timed(Times, Option<Error>),
    /// Not timed.
    Wrong(Error),
    /// With the reason.
    LeftOut(String),
    /// No answer: with what was reported.
    Failed(String),
}

/// What is asked for if no method is.
pub const PLANNED: &str = "the planner's choice";

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub case: Case,
    /// What was asked for: a method, or a peer's path.
    pub asked: String,
    /// Method and tile, or the peer.
    pub by: String,
    pub ours: bool,
    pub outcome: Outcome,
}

impl Line {
    pub fn seconds(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Timed(times, _) => Some(times.median),
            _ => None,
        }
    }

    /// Operations a second.
    pub fn rate(&self) -> Option<f64> {
        self.seconds().map(|seconds| self.case.operations() / seconds)
    }

    /// Bytes of keys and values a second.
    pub fn bandwidth(&self) -> Option<f64> {
        self.seconds().map(|seconds| self.case.bytes() / seconds)
    }

    /// Of the peak of f32 multiply-adds: all sums are f32.
    pub fn share_of_f32(&self, peaks: &Peaks) -> Option<f64> {
        Some(self.rate()? / peaks.f32?)
    }

    /// Of the peak of matrix products, which are of f16.
    pub fn share_of_matrix(&self, peaks: &Peaks) -> Option<f64> {
        let peak = peaks.matrix.filter(|_| self.case.element == Element::F16)?;
        Some(self.rate()? / peak)
    }

    /// Of the bandwidth of reading.
    pub fn share_of_read(&self, peaks: &Peaks) -> Option<f64> {
        Some(self.bandwidth()? / peaks.read?)
    }

    /// Its time over that of our fastest line of the same case.
    pub fn times_ours(&self, all: &[Line]) -> Option<f64> {
        let ours = all.iter().filter(|line| line.ours && line.case == self.case);
        let best = ours.filter_map(Line::seconds).min_by(f64::total_cmp)?;
        Some(self.seconds()? / best)
    }

    pub fn is_bad(&self) -> bool {
        self.ours && matches!(self.outcome, Outcome::Wrong(_) | Outcome::Failed(_))
    }
}
