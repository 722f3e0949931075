//! How long a bound plan takes.

use std::time::Duration;

use crate::{Bound, Error};

/// Calls of one submit at most.
const MOST_CALLS: u32 = 1000;
/// What a measurement should last by the device's clock, which ticks finely, and by the host's, which
/// sees the submit as well.
const BY_DEVICE: Duration = Duration::from_millis(2);
const BY_HOST: Duration = Duration::from_millis(20);
/// What the device's clock may say of the host's time: more than all of it, by how the two drift apart.
const MOST_OF_HOST: f64 = 1.1;
const LEAST_OF_HOST: f64 = 0.5;

/// Where a race has its times from: the machine, or a script in tests, which so depend on no machine's
/// speed.
pub(super) trait Timer {
    /// Since the race began.
    fn elapsed(&self) -> Duration;

    /// Runs so many calls in one submit. Their seconds by the host's clock and, where there is one, by
    /// the device's.
    fn submit(&mut self, bound: &Bound, calls: u32) -> Result<(f64, Option<f64>), Error>;

    /// Does without the device's clock from now on.
    fn drop_stamps(&mut self);
}

/// What a race makes of a timer: how often to call, which clock to believe.
pub(super) struct Clock<'t> {
    timer: &'t mut dyn Timer,
    /// The device's clock, which has agreed with the host's.
    by_device: bool,
}

impl<'t> Clock<'t> {
    pub fn new(timer: &'t mut dyn Timer) -> Clock<'t> {
        Clock { timer, by_device: false }
    }

    pub fn elapsed(&self) -> Duration {
        self.timer.elapsed()
    }

    /// Calls that a measurement should consist of, if one takes so many seconds, and none of which
    /// should take longer than `most`.
    pub fn calls(&self, seconds: f64, most: Duration) -> u32 {
        let long_enough = if self.by_device { BY_DEVICE } else { BY_HOST };
        calls(seconds, long_enough.min(most))
    }

    /// The first calls. From then on the device's clock is used only if it agreed with the host's on
    /// how long many of them took.
    pub fn first(&mut self, bound: &Bound) -> Result<(), Error> {
        let (_, stamped) = self.timer.submit(bound, 1)?;
        if stamped.is_some() {
            let (wall, _) = self.timer.submit(bound, 1)?;
            let (wall, stamped) = self.timer.submit(bound, calls(wall, BY_HOST))?;
            let agreed = LEAST_OF_HOST * wall..=MOST_OF_HOST * wall;
            self.by_device = stamped.is_some_and(|stamped| agreed.contains(&stamped));
            if !self.by_device {
                self.timer.drop_stamps();
            }
        }
        Ok(())
    }

    /// Seconds that one of so many calls takes, all in one submit.
    pub fn time(&mut self, bound: &Bound, calls: u32) -> Result<f64, Error> {
        let (wall, stamped) = self.timer.submit(bound, calls)?;
        let sound = |&stamped: &f64| stamped > 0.0 && stamped <= MOST_OF_HOST * wall;
        let stamped = stamped.filter(|_| self.by_device).filter(sound);
        Ok(stamped.unwrap_or(wall) / f64::from(calls))
    }
}

/// Calls of so many seconds that last long enough.
fn calls(seconds: f64, long_enough: Duration) -> u32 {
    ((long_enough.as_secs_f64() / seconds.max(1e-9)) as u32).clamp(1, MOST_CALLS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tuner::operands::Operands;
    use crate::host::tuner::script::{Cost, Script, noop};
    use crate::{Problem, Shape};

    #[test]
    fn calls_that_last_long_enough() {
        assert_eq!(calls(1e-3, BY_HOST), 20);
        assert_eq!(calls(1e-3, BY_DEVICE), 2);
        assert_eq!(calls(1.0, BY_HOST), 1);
        for tiny in [0.0, -1.0, f64::NAN] {
            assert_eq!(calls(tiny, BY_HOST), MOST_CALLS);
        }
    }

    /// A device's clock that says so much of the host's time: what a call takes, how many calls a
    /// measurement has, and whether the device's clock was dropped.
    #[test]
    fn a_device_that_disagrees_is_not_believed() {
        let gpu = noop();
        let problem = Problem::new(Shape::self_attention(1, 2, 5, 4));
        let operands = Operands::new(&gpu, &problem).expect("operands");
        let plan = gpu.planner().plan(&problem).expect("a plan");
        let bound = plan.bind(operands.buffers()).expect("bound");
        let millis = |of_host: Option<f64>| {
            let cost = |_| Cost { call: Duration::from_millis(1), ..Cost::default() };
            let script = Script::new(cost);
            let script = match of_host {
                Some(of_host) => script.with_device(of_host),
                None => script,
            };
            let mut timer = &script;
            let mut clock = Clock::new(&mut timer);
            clock.first(&bound).expect("a call");
            let seconds = clock.time(&bound, 10).expect("a time");
            let calls = clock.calls(1e-3, Duration::MAX);
            let submits = script.submits.borrow().iter().map(|submit| submit.1).collect::<Vec<_>>();
            ((seconds * 1e6).round(), calls, script.drops.get(), submits)
        };
        assert_eq!(millis(None), (1000.0, 20, 0, vec![1, 10]));
        for (of_host, micros) in [(0.5, 500.0), (0.9, 900.0), (1.1, 1100.0)] {
            assert_eq!(millis(Some(of_host)), (micros, 2, 0, vec![1, 1, 20, 10]), "{of_host}");
        }
        for of_host in [0.0, 0.49, 1.11, -1.0, f64::NAN] {
            assert_eq!(millis(Some(of_host)), (1000.0, 20, 1, vec![1, 1, 20, 10]), "{of_host}");
        }
    }

    /// One measurement in which the device's clock makes no sense is the host's.
    #[test]
    fn a_device_that_stumbles_is_not_believed_then() {
        struct Stumbles(Vec<f64>);
        impl Timer for Stumbles {
            fn elapsed(&self) -> Duration {
                Duration::ZERO
            }
            fn submit(&mut self, _: &Bound, _: u32) -> Result<(f64, Option<f64>), Error> {
                Ok((1.0, Some(self.0.remove(0))))
            }
            fn drop_stamps(&mut self) {
                panic!("it agreed");
            }
        }
        let gpu = noop();
        let problem = Problem::new(Shape::self_attention(1, 2, 5, 4));
        let operands = Operands::new(&gpu, &problem).expect("operands");
        let plan = gpu.planner().plan(&problem).expect("a plan");
        let bound = plan.bind(operands.buffers()).expect("bound");
        // Three of them are the first calls.
        let mut timer = Stumbles(vec![9.0, 9.0, 0.8, 0.7, 1.2, 0.0, -1.0, 0.25]);
        let mut clock = Clock::new(&mut timer);
        clock.first(&bound).expect("a call");
        let times = [0; 5].map(|_| clock.time(&bound, 1).expect("a time"));
        assert_eq!(times, [0.7, 1.0, 1.0, 1.0, 0.25]);
    }
}
