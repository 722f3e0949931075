//! What wgpu says against a call: now on native, later in browsers.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::Error;

#[cfg(not(target_family = "wasm"))]
type Verdict = Pin<Box<dyn Future<Output = Option<wgpu::Error>> + Send>>;
#[cfg(target_family = "wasm")]
type Verdict = Pin<Box<dyn Future<Output = Option<wgpu::Error>>>>;

/// Runs wgpu calls so that their errors come to us and not to the device's handler.
pub(crate) trait Scope {
    /// True if nobody awaits a verdict that is not there at once.
    const HASTY: bool;

    fn run<T>(&mut self, device: &wgpu::Device, call: impl FnOnce() -> T) -> Result<T, Error>;
}

/// Takes the verdicts that are there at once: on native, all of them.
pub(crate) struct Now;

/// Keeps the verdicts to be awaited.
#[derive(Default)]
pub(crate) struct Later(Vec<Verdict>);

impl Scope for Now {
    const HASTY: bool = true;

    fn run<T>(&mut self, device: &wgpu::Device, call: impl FnOnce() -> T) -> Result<T, Error> {
        scoped(device, call).map(|(result, _)| result)
    }
}

impl Scope for Later {
    const HASTY: bool = false;

    fn run<T>(&mut self, device: &wgpu::Device, call: impl FnOnce() -> T) -> Result<T, Error> {
        let (result, pending) = scoped(device, call)?;
        self.0.extend(pending);
        Ok(result)
    }
}

impl Later {
    pub async fn outcome(self) -> Result<(), Error> {
        for verdict in self.0 {
            if let Some(error) = verdict.await {
                return Err(Error::Device(error.to_string()));
            }
        }
        Ok(())
    }
}

/// The call's result and the verdicts that are still to come: on native, none.
fn scoped<T>(device: &wgpu::Device, call: impl FnOnce() -> T) -> Result<(T, Vec<Verdict>), Error> {
    use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
    let outer = device.push_error_scope(Internal);
    let middle = device.push_error_scope(OutOfMemory);
    let inner = device.push_error_scope(Validation);
    let result = call();
    let verdicts: [Verdict; 3] =
        [Box::pin(inner.pop()), Box::pin(middle.pop()), Box::pin(outer.pop())];
    let mut pending = Vec::new();
    for mut verdict in verdicts {
        let mut context = Context::from_waker(Waker::noop());
        match verdict.as_mut().poll(&mut context) {
            Poll::Ready(Some(error)) => return Err(Error::Device(error.to_string())),
            Poll::Ready(None) => {}
            Poll::Pending => pending.push(verdict),
        }
    }
    Ok((result, pending))
}
