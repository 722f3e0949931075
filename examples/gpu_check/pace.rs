//! What there is time for: the whole run's, and a call's.

use std::time::{Duration, Instant};

use super::case::Case;
use super::line::Line;
use super::report::Report;

/// Windows resets a device whose work lasts 2 s; wgpu may put several dispatches into one piece.
pub const LONGEST_CALL: f64 = 1.0;
/// Of the peak, if nothing like it has been measured.
const FIRST_GUESS: f64 = 0.03;
/// Without a peak: a phone's.
const SLOWEST: f64 = 2e9;

pub struct Pace {
    begun: Instant,
    all: Duration,
}

impl Pace {
    pub fn new(seconds: u64) -> Pace {
        Pace { begun: Instant::now(), all: Duration::from_secs(seconds) }
    }

    pub fn left(&self) -> Duration {
        self.all.saturating_sub(self.begun.elapsed())
    }

    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Why a case has to be left out.
    pub fn refuses(&self, case: &Case, asked: &str, report: &Report) -> Option<String> {
        if self.left().is_zero() {
            return Some(format!("the {} s of this run were over", self.all.as_secs()));
        }
        let seconds = expected(case, asked, report);
        (seconds > LONGEST_CALL)
            .then(|| format!("a call may take {seconds:.1} s, longer than drivers allow"))
    }
}

/// Seconds of a call, from the largest like it that was measured: of the same method if there is one,
/// else of the slowest.
pub fn expected(case: &Case, asked: &str, report: &Report) -> f64 {
    let kind = |case: &Case| (case.is_decode(), case.dim, case.element);
    let alike = report.lines.iter().filter(|line| line.ours && kind(&line.case) == kind(case));
    let rate = |lines: &mut dyn Iterator<Item = &Line>| {
        let lines: Vec<_> = lines.filter_map(|line| Some((line.case.keys, line.rate()?))).collect();
        let largest = lines.iter().map(|&(keys, _)| keys).max()?;
        let rates = lines.iter().filter(|&&(keys, _)| keys == largest).map(|&(_, rate)| rate);
        rates.min_by(f64::total_cmp)
    };
    let known = rate(&mut alike.clone().filter(|line| line.asked == asked));
    let known = known.or_else(|| rate(&mut alike.clone()));
    let guess = || report.peaks.f32.map_or(SLOWEST, |peak| FIRST_GUESS * peak);
    case.operations() / known.unwrap_or_else(guess)
}
