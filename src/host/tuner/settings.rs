//! How the tuner measures.

use std::time::Duration;

/// How a [`Tuner`](super::Tuner) measures.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TunerSettings {
    /// Time for one class, 10 s if not set: candidates whose turn has not come at half of it stay out.
    /// One compilation, which cannot be stopped, and a final of three rounds may go past it.
    pub budget: Duration,
    /// Rounds of the final, in which the best candidates and the incumbent take turns, 9.
    pub rounds: u32,
    /// By how much of the incumbent's time a candidate must be faster to replace it, 0.05.
    pub margin: f64,
    /// Candidates whose second call takes so many times the best one's time make no other, 3.
    pub hopeless: f64,
    /// The longest submit of several calls, 0.2 s: some systems reset a device that works on one for
    /// 2 s. A single call may take longer.
    pub submit: Duration,
    /// Bytes of [`Operand::Scratch`](crate::Operand::Scratch) that a candidate may take, unless the
    /// planner's own choice takes more, 64 MiB.
    pub scratch_bytes: u64,
}

impl Default for TunerSettings {
    fn default() -> TunerSettings {
        TunerSettings {
            budget: Duration::from_secs(10),
            rounds: 9,
            margin: 0.05,
            hopeless: 3.0,
            submit: Duration::from_millis(200),
            scratch_bytes: 64 << 20,
        }
    }
}

impl TunerSettings {
    /// The same with another time for one class.
    #[must_use]
    pub const fn budget(self, budget: Duration) -> TunerSettings {
        TunerSettings { budget, ..self }
    }

    /// The same with another number of rounds; at least 3 are made.
    #[must_use]
    pub const fn rounds(self, rounds: u32) -> TunerSettings {
        TunerSettings { rounds, ..self }
    }

    /// The same with another margin.
    #[must_use]
    pub const fn margin(self, margin: f64) -> TunerSettings {
        TunerSettings { margin, ..self }
    }
}
