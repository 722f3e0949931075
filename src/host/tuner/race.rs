//! Candidates of one class against the incumbent.

use std::time::Duration;

use super::clock::{Clock, Timer};
use super::decide::{agree, median, ratio, winner};
use super::operands::{Operands, make};
use super::report::{Candidate, Outcome, Progress, Tuned};
use super::settings::TunerSettings;
use crate::host::Gpu;
use crate::{Bound, Choice, Class, Description, Error, Operand, Problem};

/// Rounds in which all take part, and of those how many go on to the final beside the incumbent.
const HEATS: u32 = 2;
const FINALISTS: usize = 3;
/// A final of fewer rounds decides nothing.
const FEWEST_ROUNDS: u32 = 3;
/// The part of the budget by which the last candidate must have begun: the rest is for the rounds.
const ENTER_BY: f64 = 0.5;

/// Who races, on what, and under which rules.
pub(super) struct Race<'a> {
    gpu: &'a Gpu,
    problem: &'a Problem,
    settings: &'a TunerSettings,
    class: Class,
    show: &'a mut dyn FnMut(Progress),
    clock: Clock<'a>,
    operands: Operands,
    scratch: wgpu::Buffer,
    /// What each that was planned does.
    seen: Vec<Description>,
    incumbent: Option<Incumbent>,
    /// The shortest call so far, in seconds.
    shortest: f64,
    entrants: Vec<Entrant>,
}

/// What candidates are compared with before they race.
struct Incumbent {
    answer: Vec<f32>,
    scratch_bytes: u64,
    /// Of its second call.
    seconds: f64,
}

struct Entrant {
    choice: Choice,
    /// What it races with, or why it does not.
    racer: Result<Racer, Outcome>,
}

struct Racer {
    bound: Bound,
    /// Calls of a submit.
    calls: u32,
    /// Seconds of a call, one a round, first those of the heats, then those of the final.
    times: Vec<f64>,
}

impl<'a> Race<'a> {
    pub fn new(
        gpu: &'a Gpu,
        problem: &'a Problem,
        settings: &'a TunerSettings,
        timer: &'a mut dyn Timer,
        show: &'a mut dyn FnMut(Progress),
    ) -> Result<Race<'a>, Error> {
        Ok(Race {
            gpu,
            problem,
            settings,
            class: Class::of_valid(problem),
            show,
            clock: Clock::new(timer),
            operands: Operands::new(gpu, problem)?,
            scratch: make(gpu, Operand::Scratch, 0)?,
            seen: Vec::new(),
            incumbent: None,
            shortest: f64::INFINITY,
            entrants: Vec::new(),
        })
    }

    /// The best of these, the first of which is the incumbent.
    pub fn run(mut self, choices: &[Choice]) -> Result<Tuned, Error> {
        self.enter(choices)?;
        let racing = |at: &usize| self.entrants[*at].racer.is_ok();
        let in_heats: Vec<usize> = (0..self.entrants.len()).filter(racing).collect();
        for round in 1..=HEATS {
            self.round(round, &in_heats)?;
        }
        let ratios: Vec<f64> = (0..self.entrants.len()).map(|at| self.ratio(at)).collect();
        let mut finalists: Vec<usize> = in_heats.into_iter().filter(|&at| at > 0).collect();
        finalists.sort_by(|&a, &b| ratios[a].total_cmp(&ratios[b]));
        finalists.truncate(FINALISTS);
        finalists.insert(0, 0);
        // Alone, the incumbent needs no final.
        if finalists.len() > 1 {
            self.last(&finalists)?;
        }
        Ok(self.result(&finalists, &ratios))
    }

    /// The final. What the heats measured chose who is here: it would flatter them.
    fn last(&mut self, finalists: &[usize]) -> Result<(), Error> {
        for &at in finalists {
            if let Ok(racer) = &mut self.entrants[at].racer {
                racer.times.clear();
            }
        }
        for round in 0..self.settings.rounds.max(FEWEST_ROUNDS) {
            if round >= FEWEST_ROUNDS && self.is_past(1.0) {
                break;
            }
            self.round(HEATS + 1 + round, finalists)?;
        }
        Ok(())
    }

    /// Plans each, runs it once and looks at its answer, until time is up.
    fn enter(&mut self, choices: &[Choice]) -> Result<(), Error> {
        for (at, &choice) in choices.iter().enumerate() {
            self.show(0, [at, choices.len()], choice);
            let racer = if at > 0 && self.is_past(ENTER_BY) {
                Err(Outcome::Unmeasured)
            } else {
                self.racer(choice)
            };
            let racer = match racer {
                Err(Outcome::Refused(error)) => match self.gpu.explain(error) {
                    // Without an incumbent, or a device, there is nothing to compare.
                    error if at == 0 => return Err(error),
                    error @ Error::DeviceLost(_) => return Err(error),
                    error => Err(Outcome::Refused(error)),
                },
                racer => racer,
            };
            self.entrants.push(Entrant { choice, racer });
        }
        Ok(())
    }

    fn racer(&mut self, choice: Choice) -> Result<Racer, Outcome> {
        let plan = self.gpu.planner().plan_with(self.problem, choice).map_err(Outcome::Refused)?;
        let description = plan.describe();
        if self.seen.contains(&description) {
            return Err(Outcome::Same);
        }
        self.seen.push(description);
        let need = plan.scratch_bytes();
        let most = self.incumbent.as_ref().map_or(need, |incumbent| incumbent.scratch_bytes);
        let got = most.max(self.settings.scratch_bytes);
        if need > got {
            let what = "scratch that a candidate may take";
            return Err(Outcome::Refused(Error::Limit { what, need, got }));
        }
        let (bound, answer) = self.first_call(&plan).map_err(Outcome::Refused)?;
        let seconds = self.clock.time(&bound, 1).map_err(Outcome::Refused)?;
        match &self.incumbent {
            None => self.incumbent = Some(Incumbent { answer, scratch_bytes: need, seconds }),
            Some(incumbent) => {
                if !agree(&answer, &incumbent.answer, self.problem.element_of(Operand::O)) {
                    return Err(Outcome::Wrong);
                }
                if seconds > self.shortest * self.settings.hopeless {
                    return Err(Outcome::Slow { ratio: seconds / incumbent.seconds });
                }
            }
        }
        self.shortest = self.shortest.min(seconds);
        let calls = self.clock.calls(seconds, self.settings.submit);
        Ok(Racer { bound, calls, times: Vec::new() })
    }

    /// Binds a plan, runs it for the first time and reads what it computes.
    fn first_call(&mut self, plan: &crate::Plan) -> Result<(Bound, Vec<f32>), Error> {
        if plan.scratch_bytes() > self.scratch.size() {
            self.scratch = make(self.gpu, Operand::Scratch, plan.scratch_bytes())?;
        }
        let buffers = self.operands.buffers().with(Operand::Scratch, &self.scratch);
        let bound = plan.bind(buffers)?;
        self.operands.clear(self.gpu)?;
        match self.incumbent {
            None => self.clock.first(&bound)?,
            Some(_) => self.clock.time(&bound, 1).map(drop)?,
        }
        let answer = self.operands.answer(self.gpu, self.problem)?;
        Ok((bound, answer))
    }

    /// One measurement of each, in an order that alternates.
    fn round(&mut self, round: u32, who: &[usize]) -> Result<(), Error> {
        for turn in 0..who.len() {
            let at = if round.is_multiple_of(2) { who[who.len() - 1 - turn] } else { who[turn] };
            self.show(round, [turn, who.len()], self.entrants[at].choice);
            if let Ok(Racer { bound, calls, times }) = &mut self.entrants[at].racer {
                times.push(self.clock.time(bound, *calls)?);
            }
        }
        Ok(())
    }

    /// What the final says of these, and the heats of the others.
    fn result(self, finalists: &[usize], heats: &[f64]) -> Tuned {
        let ratios: Vec<f64> = finalists.iter().map(|&at| self.ratio(at)).collect();
        let best = winner(&ratios, self.settings.margin);
        let choice = self.entrants[best.map_or(0, |place| finalists[place])].choice;
        let outcome = |(at, entrant): (usize, Entrant)| {
            let place = finalists.iter().position(|&finalist| finalist == at);
            let outcome = match (entrant.racer, place) {
                (Err(outcome), _) => outcome,
                (Ok(Racer { times, .. }), Some(place)) => {
                    let time = Duration::from_secs_f64(median(times));
                    Outcome::Final { time, ratio: ratios[place] }
                }
                (Ok(_), None) => Outcome::Slow { ratio: heats[at] },
            };
            Candidate { choice: entrant.choice, outcome }
        };
        let elapsed = self.clock.elapsed();
        let candidates: Vec<_> = self.entrants.into_iter().enumerate().map(outcome).collect();
        let unmeasured = |candidate: &Candidate| matches!(candidate.outcome, Outcome::Unmeasured);
        let finished = !candidates.iter().any(unmeasured);
        Tuned { class: self.class, choice, candidates, finished, elapsed }
    }

    fn ratio(&self, at: usize) -> f64 {
        match (&self.entrants[at].racer, &self.entrants[0].racer) {
            (Ok(racer), Ok(incumbent)) => ratio(&racer.times, &incumbent.times),
            _ => f64::NAN,
        }
    }

    fn is_past(&self, part: f64) -> bool {
        self.clock.elapsed().as_secs_f64() > part * self.settings.budget.as_secs_f64()
    }

    fn show(&mut self, round: u32, [turn, candidates]: [usize; 2], choice: Choice) {
        let [candidate, candidates] = [turn as u32 + 1, candidates as u32];
        let (class, elapsed) = (self.class, self.clock.elapsed());
        (self.show)(Progress { class, round, candidate, candidates, choice, elapsed });
    }
}

#[cfg(test)]
mod tests;
