//! A timer that a test writes: compiling a choice and calling it take what the test says.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use super::clock::Timer;
use super::report::Progress;
use crate::host::Gpu;
use crate::{Bound, Choice, Error};

/// What a choice takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Before its first call.
    pub compile: Duration,
    pub call: Duration,
    /// Its answer is another than the rest's.
    pub wrong: bool,
}

/// Nothing passes but what the costs say.
pub struct Script<C> {
    cost: C,
    /// What a device's clock, if there is one, says of the host's seconds.
    device: Option<f64>,
    now: Cell<Duration>,
    turn: Cell<Choice>,
    answer: RefCell<Option<(wgpu::Queue, wgpu::Buffer)>>,
    /// Calls of each submit.
    pub submits: RefCell<Vec<(Choice, u32)>>,
    pub shown: RefCell<Vec<Progress>>,
    pub drops: Cell<u32>,
}

impl<C: Fn(Choice) -> Cost> Script<C> {
    pub fn new(cost: C) -> Script<C> {
        Script {
            cost,
            device: None,
            now: Cell::default(),
            turn: Cell::default(),
            answer: RefCell::default(),
            submits: RefCell::default(),
            shown: RefCell::default(),
            drops: Cell::default(),
        }
    }

    pub fn with_device(self, of_host: f64) -> Script<C> {
        Script { device: Some(of_host), ..self }
    }

    /// Where wrong answers are written.
    pub fn spoil(&self, queue: &wgpu::Queue, answer: &wgpu::Buffer) {
        *self.answer.borrow_mut() = Some((queue.clone(), answer.clone()));
    }

    /// Whose turn it is.
    pub fn show(&self, at: Progress) {
        self.turn.set(at.choice);
        self.shown.borrow_mut().push(at);
    }

    /// Submits of a choice.
    pub fn submits_of(&self, choice: Choice) -> usize {
        self.submits.borrow().iter().filter(|submit| submit.0 == choice).count()
    }

    pub fn now(&self) -> Duration {
        self.now.get()
    }

    fn pass(&self, time: Duration) {
        self.now.set(self.now.get() + time);
    }
}

impl<C: Fn(Choice) -> Cost> Timer for &Script<C> {
    fn elapsed(&self) -> Duration {
        self.now.get()
    }

    fn submit(&mut self, _: &Bound, calls: u32) -> Result<(f64, Option<f64>), Error> {
        let choice = self.turn.get();
        let Cost { compile, call, wrong } = (self.cost)(choice);
        if self.submits_of(choice) == 0 {
            self.pass(compile);
        }
        if let Some((queue, answer)) = self.answer.borrow().as_ref().filter(|_| wrong) {
            queue.write_buffer(answer, 0, bytemuck::bytes_of(&1f32));
        }
        self.submits.borrow_mut().push((choice, calls));
        self.pass(call * calls);
        let wall = (call * calls).as_secs_f64();
        Ok((wall, self.device.map(|of_host| of_host * wall)))
    }

    fn drop_stamps(&mut self) {
        self.drops.set(self.drops.get() + 1);
    }
}

/// A device that computes nothing, in no time.
pub fn noop() -> Gpu {
    let (device, queue) = wgpu::Device::noop(&Default::default());
    Gpu::from_device(device, queue)
}
