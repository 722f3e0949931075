//! A device, uploads and readback for programs that have no device of their own. A thin user of
//! the public API; the only place that makes a device, submits, polls or maps.

use futures_intrusive::channel::shared::{OneshotReceiver, oneshot_channel};

use crate::scope::{Later, Scope};
use crate::{Attention, Buffers, Choice, Error, Inputs, Operand, Output, Problem, Scalar};

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
}

/// A result on its way back: the staging buffer, and the word that it is mapped.
struct Readback {
    operand: Operand,
    staging: wgpu::Buffer,
    mapped: OneshotReceiver<Result<(), wgpu::BufferAsyncError>>,
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
        let none = |why: String| {
            Error::NoAdapter(format!(
                "{why}. Install a driver: on Debian or Ubuntu `apt-get install \
                 mesa-vulkan-drivers` brings one that needs no GPU"
            ))
        };
        let adapter = match named(instance).await {
            Some(adapter) => adapter,
            None => {
                let options = wgpu::RequestAdapterOptions {
                    power_preference: wgpu::PowerPreference::HighPerformance,
                    ..Default::default()
                };
                instance.request_adapter(&options).await.map_err(|error| none(error.to_string()))?
            }
        };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("wgpu-attention"),
            required_limits: adapter.limits(),
            ..Default::default()
        };
        let device = adapter.request_device(&descriptor).await;
        let (device, queue) = device.map_err(|error| none(error.to_string()))?;
        Ok(Gpu::from_device(device, queue))
    }

    /// A device of the caller's, with whatever limits it has.
    pub fn from_device(device: wgpu::Device, queue: wgpu::Queue) -> Gpu {
        let attention = Attention::new(&device);
        Gpu { device, queue, attention }
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
        problem.validate()?;
        inputs.check(problem)?;
        let problem = problem.clone().separate();
        let mut output = Output::zeros(&problem);
        let plan = self.attention.plan_async(&problem, choice).await?;
        if output.o.is_empty() {
            return Ok(output);
        }
        let mut scope = Later::default();
        let mut buffers = self.upload(&problem, inputs, &mut scope)?;
        let written = problem.operands().into_iter().filter(|o| o.is_written());
        let written: Vec<_> = written.map(|o| (o, 4 * problem.elements(o))).collect();
        for &(operand, bytes) in &written {
            buffers.push((operand, self.buffer(operand, bytes, &mut scope)?));
        }
        buffers.push((
            Operand::Scratch,
            self.buffer(Operand::Scratch, plan.scratch_bytes(), &mut scope)?,
        ));
        // An allocation that failed must be known before its buffer is used.
        scope.outcome().await?;
        let given =
            buffers.iter().fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
        let bound = plan.bind_async(given).await?;

        let mut scope = Later::default();
        let (readbacks, submission) = scope.run(&self.device, || {
            let mut encoder = self.device.create_command_encoder(&Default::default());
            bound.encode_in(&mut encoder);
            let sources = buffers.iter().filter(|(o, buffer)| o.is_written() && buffer.size() > 0);
            let staged: Vec<_> =
                sources.map(|(o, buffer)| (*o, self.stage(&mut encoder, buffer))).collect();
            let submission = self.queue.submit([encoder.finish()]);
            let readback = |(operand, staging): (Operand, wgpu::Buffer)| {
                let (sender, mapped) = oneshot_channel();
                staging.map_async(wgpu::MapMode::Read, .., move |result| {
                    let _ = sender.send(result); // Nobody waits any more: nothing to do.
                });
                Readback { operand, staging, mapped }
            };
            (staged.into_iter().map(readback).collect::<Vec<_>>(), submission)
        })?;
        scope.outcome().await?;
        wait(&self.device, submission);
        for readback in readbacks {
            match readback.mapped.receive().await {
                Some(Ok(())) => {}
                Some(Err(error)) => return Err(Error::DeviceLost(error.to_string())),
                None => return Err(Error::DeviceLost("the device dropped a readback".into())),
            }
            let view = readback.staging.get_mapped_range(..);
            let view = view.map_err(|error| Error::Device(error.to_string()))?;
            if let Some(bytes) = output.bytes_mut(readback.operand) {
                let length = bytes.len();
                bytes.copy_from_slice(&view[..length]);
            }
        }
        Ok(output)
    }

    fn upload<T: Scalar, C: Scalar>(
        &self,
        problem: &Problem,
        inputs: Inputs<'_, T, C>,
        scope: &mut Later,
    ) -> Result<Vec<(Operand, wgpu::Buffer)>, Error> {
        let mut given: Vec<(Operand, &[u8])> = vec![
            (Operand::Q, bytemuck::cast_slice(inputs.q)),
            (Operand::K, bytemuck::cast_slice(inputs.k)),
            (Operand::V, bytemuck::cast_slice(inputs.v)),
        ];
        given.extend(inputs.bias.map(|bias| (Operand::Bias, bytemuck::cast_slice(bias))));
        let mut buffers = Vec::new();
        for (operand, bytes) in given {
            let bytes = &bytes[..4 * problem.elements(operand) as usize];
            let buffer = self.buffer(operand, bytes.len() as u64, scope)?;
            if !bytes.is_empty() {
                scope.run(&self.device, || self.queue.write_buffer(&buffer, 0, bytes))?;
            }
            buffers.push((operand, buffer));
        }
        Ok(buffers)
    }

    fn buffer(
        &self,
        operand: Operand,
        size: u64,
        scope: &mut Later,
    ) -> Result<wgpu::Buffer, Error> {
        let most = self.device.limits().max_buffer_size;
        if size > most {
            return Err(Error::Limit { what: operand.name(), need: size, got: most });
        }
        scope.run(&self.device, || {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(&format!("wgpu-attention {operand}")),
                size,
                usage: wgpu::BufferUsages::STORAGE
                    | wgpu::BufferUsages::COPY_SRC
                    | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        })
    }

    fn stage(&self, encoder: &mut wgpu::CommandEncoder, source: &wgpu::Buffer) -> wgpu::Buffer {
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgpu-attention readback"),
            size: source.size(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        encoder.copy_buffer_to_buffer(source, 0, &staging, 0, source.size());
        staging
    }
}

#[cfg(not(target_family = "wasm"))]
async fn named(instance: &wgpu::Instance) -> Option<wgpu::Adapter> {
    let name = std::env::var("WGPU_ADAPTER_NAME").ok()?.to_lowercase();
    let adapters = instance.enumerate_adapters(wgpu::Backends::all()).await;
    adapters.into_iter().find(|adapter| adapter.get_info().name.to_lowercase().contains(&name))
}

#[cfg(target_family = "wasm")]
async fn named(_: &wgpu::Instance) -> Option<wgpu::Adapter> {
    None
}

/// A mapping is only reported while someone polls: here a thread, so that no executor is blocked.
/// If the device is lost, the mapping itself reports it.
#[cfg(not(target_family = "wasm"))]
fn wait(device: &wgpu::Device, submission: wgpu::SubmissionIndex) {
    let device = device.clone();
    let poll = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
    std::thread::spawn(move || device.poll(poll));
}

/// Browsers poll by themselves.
#[cfg(target_family = "wasm")]
fn wait(_: &wgpu::Device, _: wgpu::SubmissionIndex) {}
