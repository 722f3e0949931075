//! Every rule of a race, on a device that computes nothing, by times that a test writes.

use super::*;
use crate::host::tuner::script::{Cost, Script, noop};
use crate::{Method, Shape, Tile};

const SECOND: Duration = Duration::from_secs(1);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn call(micros: u64) -> Cost {
    Cost { call: Duration::from_micros(micros), ..Cost::default() }
}

/// Six that differ, the incumbent first.
fn choices() -> [Choice; 6] {
    let tile = |queries, keys| Choice::tile(Tile { queries, keys });
    let [staged, decode] = [Method::Staged, Method::Decode].map(Choice::method);
    [staged, decode, tile(4, 4), tile(8, 8), tile(16, 16), tile(32, 32)]
}

fn place(choice: Choice) -> usize {
    choices().iter().position(|&other| other == choice).expect("one of them")
}

/// The first of the choices race.
fn race<C: Fn(Choice) -> Cost>(script: &Script<C>, settings: TunerSettings, count: usize) -> Tuned {
    let gpu = noop();
    let problem = Problem::new(Shape::self_attention(1, 2, 64, 16));
    let (mut timer, mut show) = (script, |at| script.show(at));
    let race =
        Race::new(&gpu, &problem, &settings, &mut timer, &mut show).expect("a device with memory");
    let output = race.operands.buffer(Operand::O).expect("an output");
    script.spoil(&gpu.queue, output);
    let tuned = race.run(&choices()[..count]).expect("a result");
    assert_eq!(tuned.candidates.len(), count);
    assert_eq!(tuned.elapsed, script.now());
    tuned
}

/// Call times in microseconds, one a choice.
fn raced(micros: &[u64], settings: TunerSettings) -> Tuned {
    race(&Script::new(|choice| call(micros[place(choice)])), settings, micros.len())
}

fn ratio_of(candidate: &Candidate) -> f64 {
    match candidate.outcome {
        Outcome::Final { ratio, .. } | Outcome::Slow { ratio } => ratio,
        ref other => panic!("{other:?}"),
    }
}

fn in_final(tuned: &Tuned) -> Vec<usize> {
    let is_final = |c: &&Candidate| matches!(c.outcome, Outcome::Final { .. });
    tuned.candidates.iter().filter(is_final).map(|c| place(c.choice)).collect()
}

#[test]
fn who_wins_by_the_margin() {
    let margin = |margin| TunerSettings::default().margin(margin);
    for (micros, settings, want) in [
        (vec![10_000, 9_600], margin(0.05), 0),
        (vec![10_000, 9_400], margin(0.05), 1),
        (vec![2_000, 1_000], margin(0.5), 1),
        (vec![2_000, 1_001], margin(0.5), 0),
        (vec![10_000, 9_600], margin(0.03), 1),
        (vec![10_000, 9_000, 8_000, 8_500], margin(0.05), 2),
        (vec![1_000, 10_000], margin(0.05), 0),
        (vec![1_000], margin(0.05), 0),
        (vec![10_000, 1_000], margin(f64::NAN), 0),
    ] {
        let tuned = raced(&micros, settings);
        assert_eq!(place(tuned.choice), want, "{micros:?}");
        assert!(tuned.finished);
        for (candidate, time) in tuned.candidates.iter().zip(&micros) {
            let want = *time as f64 / micros[0] as f64;
            assert!((ratio_of(candidate) - want).abs() < 1e-9, "{micros:?}: {candidate:?}");
            if let Outcome::Final { time: got, .. } = candidate.outcome {
                assert_eq!(got, Duration::from_micros(*time));
            }
        }
    }
}

/// Three times the best one's time, whoever that is, is not yet hopeless.
#[test]
fn the_hopeless_are_called_twice() {
    let times = [6_000, 1_000, 3_000, 3_001];
    let script = Script::new(|choice| call(times[place(choice)]));
    let tuned = race(&script, TunerSettings::default().rounds(4), times.len());
    assert_eq!(in_final(&tuned), [0, 1, 2]);
    assert!((ratio_of(&tuned.candidates[3]) - 3_001.0 / 6_000.0).abs() < 1e-9);
    // Two calls, two heats, the final.
    assert_eq!(choices().map(|choice| script.submits_of(choice)), [8, 8, 8, 2, 0, 0]);
}

/// The incumbent and the three best; what the others took in the heats is told.
#[test]
fn three_go_on_to_the_final() {
    let tuned = raced(&[2_000, 2_500, 1_500, 2_100, 1_900, 1_800], TunerSettings::default());
    assert_eq!(in_final(&tuned), [0, 2, 4, 5]);
    assert_eq!(place(tuned.choice), 2);
    assert!((ratio_of(&tuned.candidates[1]) - 1.25).abs() < 1e-9);
    assert!(matches!(tuned.candidates[3].outcome, Outcome::Slow { .. }));
}

/// Two calls, two heats, then three rounds that alone decide.
#[test]
fn heats_decide_nothing() {
    for (micros, median) in [
        ([1_000, 1_000, 2_000, 2_000, 500, 600, 700], 600),
        ([1_000, 1_000, 500, 500, 1_100, 1_200, 1_300], 1_200),
    ] {
        let at = std::cell::Cell::new(0);
        let script = Script::new(|choice| match place(choice) {
            0 => call(1_000),
            _ => call(micros[at.replace(at.get() + 1)]),
        });
        let tuned = race(&script, TunerSettings::default().rounds(3), 2);
        let Outcome::Final { time, .. } = tuned.candidates[1].outcome else { panic!("{tuned:?}") };
        assert_eq!(time, Duration::from_micros(median));
        assert_eq!(place(tuned.choice), usize::from(median < 950));
    }
}

/// Each takes 2 s to compile and half a second for two calls: after two of them 5 s have passed.
#[test]
fn the_last_enters_at_half_of_the_budget() {
    let slow = |_| Cost { compile: 2 * SECOND, ..call(250_000) };
    for (budget, entered, rounds) in [
        (10 * SECOND, 3, 3),
        (10 * SECOND - millis(1), 2, 8),
        (5 * SECOND, 2, 3),
        (5 * SECOND - millis(1), 1, 0),
        (Duration::ZERO, 1, 0),
        (60 * SECOND, 6, 9),
        (Duration::MAX, 6, 9),
    ] {
        let script = Script::new(slow);
        let tuned = race(&script, TunerSettings::default().budget(budget), 6);
        let unmeasured = |c: &Candidate| matches!(c.outcome, Outcome::Unmeasured);
        let measured: Vec<_> = tuned.candidates.iter().map(|c| !unmeasured(c)).collect();
        let want: Vec<_> = (0..6).map(|at| at < entered).collect();
        assert_eq!(measured, want, "{budget:?}");
        assert_eq!(tuned.finished, entered == 6, "{budget:?}");
        // Past the budget a final has the fewest rounds; of one there is none.
        let last = script.shown.borrow().last().expect("shown").round;
        assert_eq!(last, HEATS + rounds, "{budget:?}");
        assert_eq!(script.submits_of(choices()[0]) as u32, 2 + HEATS + rounds, "{budget:?}");
    }
}

#[test]
fn as_many_rounds_as_wanted() {
    for (rounds, want) in [(0, 3), (1, 3), (3, 3), (4, 4), (20, 20)] {
        let script = Script::new(|_| call(1_000));
        race(&script, TunerSettings::default().rounds(rounds), 2);
        assert_eq!(script.shown.borrow().last().expect("shown").round, HEATS + want);
    }
}

/// A submit lasts as long as it is read well, and never longer than is allowed.
#[test]
fn submits_of_several_calls() {
    for (micros, most, want) in [(1_000, 200, 20), (1_000, 5, 5), (30_000, 200, 1), (1, 200, 1000)]
    {
        let script = Script::new(|_| call(micros));
        let settings = TunerSettings { submit: millis(most), ..TunerSettings::default() };
        race(&script, settings, 2);
        let calls: Vec<u32> = script.submits.borrow().iter().map(|submit| submit.1).collect();
        assert_eq!(calls[..4], [1; 4]);
        assert!(calls[4..].iter().all(|&calls| calls == want), "{calls:?}");
    }
}

/// Those who were last are first in the next round; time only passes.
#[test]
fn turns_alternate_and_are_shown() {
    let script = Script::new(|_| Cost { compile: SECOND, ..call(1_000) });
    race(&script, TunerSettings::default(), 3);
    let shown = script.shown.borrow();
    for round in 0..=HEATS + 9 {
        let of_round: Vec<_> = shown.iter().filter(|at| at.round == round).collect();
        let who: Vec<_> = of_round.iter().map(|at| place(at.choice)).collect();
        let want = if round > 0 && round % 2 == 0 { [2, 1, 0] } else { [0, 1, 2] };
        assert_eq!(who, want, "round {round}");
        let turns: Vec<_> = of_round.iter().map(|at| (at.candidate, at.candidates)).collect();
        assert_eq!(turns, [(1, 3), (2, 3), (3, 3)], "round {round}");
    }
    assert!(shown.is_sorted_by_key(|at| at.round));
    // Two calls of 1 ms after each compilation, then 20 a turn.
    let entry = |at: u32| at * (SECOND + millis(2));
    let turn = |at: u32| entry(3) + at * millis(20);
    let want: Vec<_> = (0..3).map(entry).chain((0..3 * (HEATS + 9)).map(turn)).collect();
    assert_eq!(shown.iter().map(|at| at.elapsed).collect::<Vec<_>>(), want);
    assert_eq!(script.now(), turn(3 * (HEATS + 9)));
}

#[test]
fn what_is_wrong_does_not_race() {
    let script = Script::new(|choice| match place(choice) {
        0 => call(2_000),
        1 => Cost { wrong: true, ..call(1) },
        _ => call(1_500),
    });
    let tuned = race(&script, TunerSettings::default(), 3);
    assert!(matches!(tuned.candidates[1].outcome, Outcome::Wrong), "{tuned:?}");
    assert_eq!(script.submits_of(choices()[1]), 2);
    assert_eq!((place(tuned.choice), tuned.finished), (2, true));
    // Nor does it make others hopeless.
    assert_eq!(in_final(&tuned), [0, 2]);
}

/// The same choice again, one that cannot be, and one that takes more scratch than it may.
#[test]
fn what_does_not_enter() {
    let gpu = noop();
    let problem = Problem::new(Shape::self_attention(1, 2, 64, 16));
    let [staged, _, flash, ..] = choices();
    let impossible = Choice::tile(Tile { queries: 1024, keys: 1024 });
    let settings = TunerSettings { scratch_bytes: 0, ..TunerSettings::default() };
    let script = Script::new(|_| call(1_000));
    let (mut timer, mut show) = (&script, |at| script.show(at));
    let race = Race::new(&gpu, &problem, &settings, &mut timer, &mut show).expect("operands");
    let tuned = race.run(&[flash, flash, impossible, staged]).expect("a result");
    let outcomes: Vec<_> = tuned.candidates.iter().map(|candidate| &candidate.outcome).collect();
    assert!(matches!(outcomes[1], Outcome::Same));
    assert!(matches!(outcomes[2], Outcome::Refused(Error::Limit { .. })), "{:?}", outcomes[2]);
    let need = gpu.planner().plan_with(&problem, staged).expect("a plan").scratch_bytes();
    assert!(
        matches!(outcomes[3], Outcome::Refused(Error::Limit { need: n, got: 0, .. }) if *n == need),
        "{:?}",
        outcomes[3]
    );
    assert_eq!(script.submits_of(staged), 0);
    // Alone, the incumbent needs no final.
    assert_eq!(script.submits_of(flash) as u32, 2 + HEATS);
}
