//! What measured times and answers say. No device.

use crate::Element;

/// The middle one, or the mean of the two in the middle; NaN of none.
pub(super) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    match (numbers.len(), numbers.len() / 2) {
        (0, _) => f64::NAN,
        (n, middle) if n % 2 == 1 => numbers[middle],
        (_, middle) => (numbers[middle - 1] + numbers[middle]) / 2.0,
    }
}

/// What a candidate takes of the incumbent's time, the worse of two: the median over the rounds, since
/// what slows the whole machine for some rounds slows both; and best over best, since other work may
/// slow either, but makes nothing faster.
pub(super) fn ratio(times: &[f64], incumbent: &[f64]) -> f64 {
    let rounds = times.len().min(incumbent.len());
    let (times, incumbent) = (&times[..rounds], &incumbent[..rounds]);
    let best = |times: &[f64]| times.iter().copied().fold(f64::NAN, f64::min);
    let of_rounds = median(times.iter().zip(incumbent).map(|(time, base)| time / base).collect());
    of_rounds.max(best(times) / best(incumbent))
}

/// The candidate with the least ratio, if that beats the incumbent by the margin. NaN beats nothing.
pub(super) fn winner(ratios: &[f64], margin: f64) -> Option<usize> {
    let good = |at: &usize| ratios[*at] <= 1.0 - margin;
    (0..ratios.len()).filter(good).min_by(|&a, &b| ratios[a].total_cmp(&ratios[b]))
}

/// True if two answers are the same but for roundings of sums in another order, and of the type that
/// stores them.
pub(super) fn agree(got: &[f32], want: &[f32], element: Element) -> bool {
    let tolerance = match element {
        Element::F32 => 1e-4,
        Element::F16 => 4e-3,
        _ => 3e-2,
    };
    let close = |got: f32, want: f32| {
        let error = (got - want).abs();
        // LSE of a row without keys is -inf in both.
        got == want || (want.is_finite() && error <= tolerance * want.abs().max(1.0))
    };
    got.len() == want.len() && got.iter().zip(want).all(|(&got, &want)| close(got, want))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert!(median(vec![]).is_nan());
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    /// The machine is half as fast in every other round; the candidate is a tenth faster in each.
    #[test]
    fn ratios_outlive_a_shared_machine() {
        let incumbent: Vec<f64> = (0..9).map(|round| [1.0, 2.0][round % 2]).collect();
        let candidate: Vec<f64> = incumbent.iter().map(|time| 0.9 * time).collect();
        assert!((ratio(&candidate, &incumbent) - 0.9).abs() < 1e-12);
        // Fewer rounds than the incumbent's: those that there are.
        assert!((ratio(&candidate[..3], &incumbent) - 0.9).abs() < 1e-12);
    }

    /// Other work slowed the incumbent in most rounds, not in all.
    #[test]
    fn a_slow_candidate_is_not_lucky() {
        assert_eq!(ratio(&[1.2, 1.2, 1.2, 1.2, 1.3], &[2.0, 1.0, 2.0, 3.0, 2.0]), 1.2);
        assert!(ratio(&[], &[]).is_nan());
    }

    #[test]
    fn who_wins() {
        assert_eq!(winner(&[1.0, 0.8, 0.7], 0.05), Some(2));
        assert_eq!(winner(&[1.0, 0.96, 0.97], 0.05), None);
        assert_eq!(winner(&[1.0, f64::NAN, 0.9], 0.05), Some(2));
        assert_eq!(winner(&[], 0.05), None);
        // A margin that no one can beat.
        assert_eq!(winner(&[1.0, 0.1], f64::INFINITY), None);
        assert_eq!(winner(&[1.0, 0.1], f64::NAN), None);
    }

    #[test]
    fn which_answers_agree() {
        let want = [1.0, -2.0, f32::NEG_INFINITY, 0.0];
        let with = |at: usize, x: f32| {
            let mut got = want;
            got[at] = x;
            got
        };
        assert!(agree(&want, &want, Element::F32));
        assert!(agree(&with(0, 1.00001), &want, Element::F32));
        assert!(agree(&with(0, 1.003), &want, Element::F16));
        assert!(!agree(&with(0, 1.003), &want, Element::F32));
        assert!(!agree(&with(2, f32::MIN), &want, Element::F32));
        assert!(!agree(&with(3, f32::NAN), &want, Element::F32));
        assert!(!agree(&want[..3], &want, Element::F32));
        // What an incumbent computes that is no number agrees with nothing.
        assert!(!agree(&with(1, f32::NAN), &with(1, f32::NAN), Element::F32));
    }
}
