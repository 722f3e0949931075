//! Every case in turn, by us and by PyTorch.

use wgpu_attention::{Description, Method};

use super::answer::Answer;
use super::calls::{Call, methods, name};
use super::card::{Card, adapter, attempt};
use super::case::Case;
use super::clock::Clock;
use super::file::Files;
use super::line::{Line, Outcome, PLANNED};
use super::pace::Pace;
use super::peak;
use super::report::{DECODE, PREFILL, Report};
use super::torch::Torch;

pub struct Table<'a> {
    pub card: Card,
    pub small: bool,
    pub torch: Option<Torch>,
    pub pace: &'a Pace,
    pub report: &'a mut Report,
    pub files: &'a Files,
}

impl Table<'_> {
    /// # Errors
    /// If the report cannot be written.
    pub fn fill(&mut self, cases: &[Case]) -> Result<(), String> {
        let mut heading = "";
        for case in cases {
            let wanted = if case.is_decode() { DECODE } else { PREFILL };
            if wanted != heading {
                println!("\n{wanted}");
                heading = wanted;
            }
            self.case(case)?;
        }
        let (peaks, _) = peak::all(&self.card, self.small);
        self.report.peaks = self.report.peaks.best(peaks);
        let stamps = self.card.stamps.get();
        let by = if stamps { "the GPU's timestamps around each call" } else { "the wall clock" };
        self.note(format!("times by {by}"));
        Ok(())
    }

    fn case(&mut self, case: &Case) -> Result<(), String> {
        let mut right = None;
        let mut known: Vec<Description> = Vec::new();
        for &method in methods(case, !self.card.matrices.is_empty()) {
            let asked = asked(method);
            let (by, outcome) = match self.pace.refuses(case, &asked, self.report) {
                Some(why) => (asked.clone(), Outcome::LeftOut(why)),
                None => match self.ours(case, method, &mut right, &mut known) {
                    Some((by, outcome)) => (by, outcome),
                    None => continue,
                },
            };
            let failed = matches!(outcome, Outcome::Failed(_));
            self.push(Line { case: *case, asked, by, ours: true, outcome })?;
            // Whatever happened, the next line gets a device that works, if there is one.
            if failed {
                match adapter().and_then(|adapter| Card::open(&adapter)) {
                    Ok(card) => self.card = card,
                    Err(why) => self.note(format!("no device after a failure: {why}")),
                }
            }
        }
        let left = self.pace.left();
        let Some(torch) = self.torch.as_mut().filter(|_| !left.is_zero()) else { return Ok(()) };
        match torch.lines(case, left) {
            Ok(lines) => lines.into_iter().try_for_each(|line| self.push(line)),
            Err(why) => {
                self.torch = None;
                self.note(format!("PyTorch stopped at {}: {why}", case.name()));
                Ok(())
            }
        }
    }

    /// Name and outcome of a method; nothing if the planner chose it for this case before.
    fn ours(
        &self,
        case: &Case,
        method: Option<Method>,
        right: &mut Option<Answer>,
        known: &mut Vec<Description>,
    ) -> Option<(String, Outcome)> {
        let mut by = asked(method);
        let timed = attempt(|| {
            let call = Call::new(&self.card, case, method)?;
            if known.contains(&call.description) {
                return Ok(None);
            }
            known.push(call.description.clone());
            by = name(&call.description);
            let right = match right {
                Some(right) => right,
                None => right.insert(Answer::new(case)?),
            };
            let error = call.check(&self.card, right)?;
            if !error.is_right() {
                return Ok(Some(Outcome::Wrong(error)));
            }
            let times = Clock::new(&self.card).time(&|pass| call.bound.encode(pass))?;
            Ok(Some(Outcome::Timed(times, Some(error))))
        });
        Some((by, timed.unwrap_or_else(Some)?))
    }

    fn push(&mut self, line: Line) -> Result<(), String> {
        self.report.lines.push(line);
        println!("{}", self.report.row(&self.report.lines[self.report.lines.len() - 1]));
        self.files.write(self.report)
    }

    fn note(&mut self, note: String) {
        println!("{note}");
        self.report.notes.push(note);
    }
}

fn asked(method: Option<Method>) -> String {
    method.map_or(PLANNED.into(), |method| format!("{method:?}"))
}
