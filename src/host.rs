//! A device, uploads and readback for programs that have no device of their own. A thin user of
//! the public API; the only place that makes a device, submits, polls or maps.

mod adapter;
mod layer;
#[cfg(not(target_family = "wasm"))]
mod pipelines;
#[cfg(not(target_family = "wasm"))]
mod sealed;
mod self_test;
mod spare;
mod transfer;
#[cfg(not(target_family = "wasm"))]
mod tuner;

use crate::{Attention, Choice, Error, Inputs, Operand, Options, Output, Problem, Scalar};
#[cfg(not(target_family = "wasm"))]
pub use pipelines::PipelineFile;
#[cfg(not(target_family = "wasm"))]
pub use sealed::Loaded;
pub use self_test::{SelfTest, Verdict};
use transfer::{Resident, copy_rows};
#[cfg(not(target_family = "wasm"))]
pub use tuner::{Candidate, Outcome, Progress, Tuned, Tuner, TunerSettings};

/// A device for host calls: slices in, vectors out.
///
/// ```no_run
/// use wgpu_attention::{Gpu, Inputs, Problem, Shape};
/// # fn main() -> Result<(), wgpu_attention::Error> {
/// let problem = Problem::new(Shape::self_attention(1, 8, 512, 64)).causal();
/// let x = vec![0.5f32; 8 * 512 * 64];
/// let output = Gpu::new()?.attention(&problem, Inputs::new(&x, &x, &x))?;
/// assert_eq!(output.o.len(), x.len());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    attention: Attention,
    spare: spare::Spare,
}

impl Gpu {
    /// The best adapter there is, with all its limits. The environment variables
    /// `WGPU_BACKEND` and `WGPU_ADAPTER_NAME` choose another.
    ///
    /// # Errors
    /// [`Error::NoAdapter`], with what to install.
    #[cfg(not(target_family = "wasm"))]
    pub fn new() -> Result<Gpu, Error> {
        pollster::block_on(Gpu::new_async())
    }

    /// As `Gpu::new`, for async programs and browsers.
    ///
    /// # Errors
    /// [`Error::NoAdapter`], with what to install.
    pub async fn new_async() -> Result<Gpu, Error> {
        let descriptor = wgpu::InstanceDescriptor::new_without_display_handle().with_env();
        Gpu::from_instance(&wgpu::Instance::new(descriptor)).await
    }

    /// The best adapter of an instance of the caller's, with all its limits.
    ///
    /// # Errors
    /// [`Error::NoAdapter`], with what to install.
    pub async fn from_instance(instance: &wgpu::Instance) -> Result<Gpu, Error> {
        let adapter = adapter::find(instance).await?;
        Gpu::from_adapter(&adapter, wgpu::ExperimentalFeatures::disabled()).await
    }

    /// An adapter of the caller's choice, with all its limits. With `ExperimentalFeatures::enabled()`
    /// also its matrix units, for [`Method::Matrix`](crate::Method::Matrix): wgpu calls them
    /// experimental, and has the caller vouch for that.
    ///
    /// # Errors
    /// [`Error::NoAdapter`] if the adapter gives no device.
    pub async fn from_adapter(
        adapter: &wgpu::Adapter,
        experimental: wgpu::ExperimentalFeatures,
    ) -> Result<Gpu, Error> {
        let (device, queue) = adapter::open(adapter, experimental).await?;
        let attention = Attention::with(&device, Options::from_adapter(adapter));
        Ok(Gpu::from_device(device, queue).with_attention(attention))
    }

    /// A device of the caller's, with whatever limits it has, and its queue: wgpu panics over the queue
    /// of another device, as nobody can tell beforehand whose it is.
    pub fn from_device(device: wgpu::Device, queue: wgpu::Queue) -> Gpu {
        let attention = Attention::new(&device);
        Gpu { device, queue, attention, spare: spare::Spare::default() }
    }

    /// The same device with another [`Attention`] of it, for instance one with options.
    #[must_use]
    pub fn with_attention(self, attention: Attention) -> Gpu {
        Gpu { attention, ..self }
    }

    /// The device.
    pub fn device(&self) -> &wgpu::Device {
        &self.device
    }

    /// Its queue.
    pub fn queue(&self) -> &wgpu::Queue {
        &self.queue
    }

    /// Frees the buffers that finished calls have left for the next ones: up to 256 MiB.
    pub fn trim(&self) {
        self.spare.clear();
    }

    /// The planner, with its pipelines.
    pub fn planner(&self) -> &Attention {
        &self.attention
    }

    /// Attention over host slices: the signature and the results of
    /// [`cpu::attention`](crate::cpu::attention), computed on the GPU.
    ///
    /// # Errors
    /// As [`cpu::attention`](crate::cpu::attention); [`Error::Limit`], [`Error::DeviceLost`],
    /// [`Error::Device`].
    #[cfg(not(target_family = "wasm"))]
    pub fn attention<T: Scalar, C: Scalar>(
        &self,
        problem: &Problem,
        inputs: Inputs<'_, T, C>,
    ) -> Result<Output<T>, Error> {
        self.attention_with(problem, inputs, Choice::default())
    }

    /// As [`Gpu::attention`], with method and tile by hand.
    ///
    /// # Errors
    /// As [`Gpu::attention`] and [`Attention::plan_with`].
    #[cfg(not(target_family = "wasm"))]
    pub fn attention_with<T: Scalar, C: Scalar>(
        &self,
        problem: &Problem,
        inputs: Inputs<'_, T, C>,
        choice: Choice,
    ) -> Result<Output<T>, Error> {
        pollster::block_on(self.attention_async(problem, inputs, choice))
    }

    /// As `Gpu::attention_with`, for async programs and browsers. On native a thread waits for
    /// the device, so that any executor will do.
    ///
    /// # Errors
    /// As `Gpu::attention_with`.
    pub async fn attention_async<T: Scalar, C: Scalar>(
        &self,
        problem: &Problem,
        inputs: Inputs<'_, T, C>,
        choice: Choice,
    ) -> Result<Output<T>, Error> {
        self.explained(self.attend(problem, inputs, choice)).await
    }

    async fn attend<T: Scalar, C: Scalar>(
        &self,
        problem: &Problem,
        inputs: Inputs<'_, T, C>,
        choice: Choice,
    ) -> Result<Output<T>, Error> {
        problem.validate()?;
        inputs.check(problem)?;
        let on_device = problem.on_device(T::ELEMENT, C::ELEMENT);
        let plan = self.attention.plan_async(&on_device, choice).await?;
        let mut output = Output::zeros(problem);
        if output.o.is_empty() {
            return Ok(output);
        }
        let size = |operand| on_device.bytes(operand);
        let mut resident = Resident::new(self);
        resident.input(Operand::Q, bytemuck::cast_slice(inputs.q), size(Operand::Q))?;
        resident.input(Operand::K, bytemuck::cast_slice(inputs.k), size(Operand::K))?;
        resident.input(Operand::V, bytemuck::cast_slice(inputs.v), size(Operand::V))?;
        resident.extras(&on_device, problem, &inputs.extras)?;
        for operand in on_device.operands().into_iter().filter(|o| o.is_written()) {
            resident.memory(operand, size(operand))?;
        }
        resident.memory(Operand::Scratch, plan.scratch_bytes())?;
        let bound = plan.bind_async(resident.ready().await?).await?;
        let store = |operand, bytes: &[u8]| match operand {
            // Rows of 16 bits may lie further apart there.
            Operand::O if T::ELEMENT.bytes() == 2 => {
                copy_rows(bytemuck::cast_slice(bytes), &on_device, &mut output.o, problem);
            }
            _ => {
                if let Some(part) = output.bytes_mut(operand) {
                    part.copy_from_slice(&bytes[..part.len()]);
                }
            }
        };
        resident.run(|encoder| bound.encode_in(encoder), store).await?;
        Ok(output)
    }

    /// wgpu reports calls on a lost device as invalid objects, if at all: says what it is.
    async fn explained<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        call.await.map_err(|error| self.explain(error))
    }

    fn explain(&self, error: Error) -> Error {
        match error {
            Error::Device(why) if transfer::is_lost(&self.device) => Error::DeviceLost(why),
            error => error,
        }
    }
}
