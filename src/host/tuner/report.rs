//! What the tuner shows while it measures, and what it says afterwards.

use std::time::Duration;

use crate::{Choice, Class, Error};

/// Where a measurement stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// What is measured.
    pub class: Class,
    /// 0: each candidate is planned, run once and checked. Then heats of all, then the final of the
    /// best.
    pub round: u32,
    /// The candidate whose turn it is, from 1, and how many take part in this round.
    pub candidate: u32,
    /// How many take part in this round.
    pub candidates: u32,
    /// The candidate.
    pub choice: Choice,
    /// Since this class was begun.
    pub elapsed: Duration,
}

/// What was found for a class.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tuned {
    /// The class.
    pub class: Class,
    /// The best choice; the incumbent's if none beat it by the margin.
    pub choice: Choice,
    /// Every candidate, the incumbent first: the planner's choice, or what was tuned before.
    pub candidates: Vec<Candidate>,
    /// False if the budget ran out before every candidate had its turn. The choice is still the best
    /// of those that had, in a final of at least three rounds.
    pub finished: bool,
    /// How long it took.
    pub elapsed: Duration,
}

/// What became of a candidate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// Method and tile.
    pub choice: Choice,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a candidate. Ratios are to the incumbent's time: the worse of the median over the
/// rounds and the best round over the best.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It was in the final.
    Final {
        /// Median time of a call.
        time: Duration,
        /// To the incumbent's.
        ratio: f64,
    },
    /// It was too slow for the final, or already in its second call.
    Slow {
        /// To the incumbent's.
        ratio: f64,
    },
    /// It computes something else than the incumbent.
    Wrong,
    /// It is not possible for this problem.
    Refused(Error),
    /// It does what an earlier candidate does.
    Same,
    /// The budget ran out before its turn.
    Unmeasured,
}
