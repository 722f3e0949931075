//! Which kernels and tiles are best here: measured, kept, looked up.

mod clock;
mod decide;
mod file;
mod machine;
mod operands;
mod race;
mod report;
#[cfg(test)]
mod script;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::Gpu;
use super::sealed::{Loaded, header, read, seal, unseal, write};
use crate::{Attention, Choice, Class, Error, Operand, Problem, Tuning};
use clock::Timer;
use file::Found;
use machine::Machine;
use race::Race;
pub use report::{Candidate, Outcome, Progress, Tuned};
pub use settings::TunerSettings;

/// Measures which choice is best for a [`Class`] of problems on a device, and keeps what it found in
/// memory and in a file.
///
/// Candidates take turns, so that whatever else the machine does meets them all; a candidate must give
/// the planner's answer, and beat its time by a margin, to replace it. What compiling costs does not
/// count, though the planner's own choice minds it. Operands are made up: random numbers, masks that
/// hide a quarter of the keys, every sequence as long as it can be.
///
/// ```no_run
/// use wgpu_attention::{Gpu, Problem, Shape, Tuner};
/// # fn main() -> Result<(), wgpu_attention::Error> {
/// let gpu = Gpu::new()?;
/// let mut tuner = Tuner::new(&gpu);
/// println!("attention.tuning: {}", tuner.load("attention.tuning"));
/// for tokens in [256, 1024, 4096] {
///     let problem = Problem::new(Shape::self_attention(1, 8, tokens, 64)).causal();
///     // Not measured again if the file knows its class.
///     let choice = tuner.tune(&problem, |at| eprint!("\r{} of {}", at.candidate, at.candidates))?;
///     println!("{tokens} tokens: {choice}");
/// }
/// tuner.save("attention.tuning")?;
/// // From now on these calls use what was found, without compiling it again. In your own program:
/// // Attention::with(&device, Options::from_adapter(&adapter)).with_tuning(tuner.tuning().clone())
/// let gpu = gpu.with_attention(tuner.attention());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Tuner {
    /// With a planner that knows no tuning, so that the default choice is the tables' own.
    gpu: Gpu,
    settings: TunerSettings,
    tuning: Tuning,
    /// Classes whose candidates have not all had their turn, and the budget that did not suffice.
    unfinished: BTreeMap<Class, Duration>,
}

impl Tuner {
    /// For a device, with the planner's options. What its tuning says already is what candidates must
    /// beat.
    pub fn new(gpu: &Gpu) -> Tuner {
        let tuning = gpu.planner().tuning().clone();
        let planner = gpu.planner().clone().with_tuning(Tuning::default());
        let gpu = gpu.clone().with_attention(planner);
        Tuner { gpu, settings: TunerSettings::default(), tuning, unfinished: BTreeMap::new() }
    }

    /// The same with other settings.
    #[must_use]
    pub fn with_settings(self, settings: TunerSettings) -> Tuner {
        Tuner { settings, ..self }
    }

    /// All that was found.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// The planner with all that was found, and with what measuring has compiled.
    pub fn attention(&self) -> Attention {
        self.gpu.planner().clone().with_tuning(self.tuning.clone())
    }

    /// The best choice for a problem; measures it first unless its class is known, the choice is
    /// possible here, and no larger budget is to be had than the one that found it.
    ///
    /// # Errors
    /// As [`Tuner::measure`].
    pub fn tune(&mut self, problem: &Problem, show: impl FnMut(Progress)) -> Result<Choice, Error> {
        match self.known(problem)? {
            Some(choice) => Ok(choice),
            None => self.measure(problem, show).map(|tuned| tuned.choice),
        }
    }

    /// What was found for a problem's class, if it is good enough not to measure again.
    fn known(&self, problem: &Problem) -> Result<Option<Choice>, Error> {
        let class = Class::of(problem)?;
        let spent = self.unfinished.get(&class);
        let enough = spent.is_none_or(|spent| *spent >= self.settings.budget);
        let possible = |choice: &Choice| self.gpu.planner().plan_with(problem, *choice).is_ok();
        Ok(self.tuning.get(&class).filter(|_| enough).filter(possible))
    }

    /// Measures a problem, which stands for its class, whether that is known or not, and says what
    /// became of each candidate. An arena's operands are measured contiguous.
    ///
    /// # Errors
    /// As [`Attention::plan`]; [`Error::Size`] for a problem without output; [`Error::Full`] for a
    /// cache whose pages do not hold all its sequences at their full length; [`Error::Limit`] and
    /// [`Error::Device`] if its operands find no memory; [`Error::DeviceLost`]. What was found before
    /// stays.
    pub fn measure(
        &mut self,
        problem: &Problem,
        mut show: impl FnMut(Progress),
    ) -> Result<Tuned, Error> {
        problem.validate()?;
        let problem = problem.out_of_arena();
        if problem.elements(Operand::O) == 0 {
            return Err(Error::Size { what: "o", need: "an element, to be measured", got: 0 });
        }
        let gpu = self.gpu.clone();
        let mut machine = Machine::new(&gpu).map_err(|error| gpu.explain(error))?;
        self.race(&problem, &mut machine, &mut show)
    }

    /// Measures a problem that can be, by a timer's times, and keeps what was found.
    fn race(
        &mut self,
        problem: &Problem,
        timer: &mut dyn Timer,
        show: &mut dyn FnMut(Progress),
    ) -> Result<Tuned, Error> {
        let known = self.tuning.get(&Class::of_valid(problem));
        let planner = self.gpu.planner();
        let possible = |choice: &Choice| planner.plan_with(problem, *choice).is_ok();
        // A choice of the class may not suit this problem: then the planner falls back, too.
        let mut choices: Vec<Choice> = known.into_iter().filter(possible).collect();
        choices.push(Choice::default());
        choices.extend(planner.proposals(problem));
        let race = Race::new(&self.gpu, problem, &self.settings, timer, show);
        let tuned =
            race.and_then(|race| race.run(&choices)).map_err(|error| self.gpu.explain(error))?;
        self.tuning = std::mem::take(&mut self.tuning).with(tuned.class, tuned.choice);
        match tuned.finished {
            true => self.unfinished.remove(&tuned.class),
            false => self.unfinished.insert(tuned.class, self.settings.budget),
        };
        Ok(tuned)
    }

    /// Adds what a file knows and this tuner does not; says what came of it. A file from another
    /// adapter, driver or version of this crate, or of a device with other limits, and one that is not
    /// exactly what was written, is as if there were none.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Loaded {
        let header = header("tuning", self.gpu.planner());
        let bytes = read(path.as_ref(), file::MOST_BYTES);
        match bytes.and_then(|bytes| file::parse(unseal(&header, &bytes)?)) {
            Ok(Found { tuning, mut unfinished }) => {
                unfinished.retain(|class, _| self.tuning.get(class).is_none());
                self.unfinished.append(&mut unfinished);
                self.tuning = self
                    .tuning
                    .iter()
                    .fold(tuning, |all, (&class, &choice)| all.with(class, choice));
                Loaded::Fresh
            }
            Err(why) => why,
        }
    }

    /// Writes all that was found, for this adapter, driver and version of the crate, and the budgets that
    /// did not suffice. A file that is there is replaced as a whole, one of another adapter too: each
    /// needs its own.
    ///
    /// # Errors
    /// [`Error::File`], also for more than 1 MiB, some 19,000 classes. What was there before is still there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let header = header("tuning", self.gpu.planner());
        let (tuning, unfinished) = (self.tuning.clone(), self.unfinished.clone());
        let bytes = seal(&header, Found { tuning, unfinished }.text().as_bytes());
        if bytes.len() as u64 > file::MOST_BYTES {
            let most = file::MOST_BYTES;
            return Err(Error::File(format!("{} bytes, more than {most}", bytes.len())));
        }
        write(path.as_ref(), &bytes)
    }
}
