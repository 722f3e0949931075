//! What wgpu says against a call: now on native, later in browsers.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use crate::Error;

#[cfg(not(target_family = "wasm"))]
type Verdict = Pin<Box<dyn Future<Output = Option<wgpu::Error>> + Send>>;
#[cfg(target_family = "wasm")]
type Verdict = Pin<Box<dyn Future<Output = Option<wgpu::Error>>>>;

/// Runs wgpu calls so that their errors come to us and not to the device's handler.
pub(crate) trait Scope {
    fn run<T>(&mut self, device: &wgpu::Device, call: impl FnOnce() -> T) -> Result<T, Error>;
}

/// Takes the verdicts that are there at once: on native, all of them.
pub(crate) struct Now;

/// Keeps the verdicts to be awaited.
#[derive(Default)]
pub(crate) struct Later(Vec<Verdict>);

impl Scope for Now {
    fn run<T>(&mut self, device: &wgpu::Device, call: impl FnOnce() -> T) -> Result<T, Error> {
        let (result, verdicts) = scoped(device, call);
        for mut verdict in verdicts {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(Some(error)) = pin!(&mut verdict).poll(&mut context) {
                return Err(Error::Device(error.to_string()));
            }
        }
        Ok(result)
    }
}

impl Scope for Later {
    fn run<T>(&mut self, device: &wgpu::Device, call: impl FnOnce() -> T) -> Result<T, Error> {
        let (result, verdicts) = scoped(device, call);
        self.0.extend(verdicts);
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

fn scoped<T>(device: &wgpu::Device, call: impl FnOnce() -> T) -> (T, [Verdict; 3]) {
    use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
    let outer = device.push_error_scope(Internal);
    let middle = device.push_error_scope(OutOfMemory);
    let inner = device.push_error_scope(Validation);
    let result = call();
    let verdicts: [Verdict; 3] =
        [Box::pin(inner.pop()), Box::pin(middle.pop()), Box::pin(outer.pop())];
    (result, verdicts)
}
