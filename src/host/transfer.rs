//! Slices to buffers, one submit, buffers to slices.

use futures_intrusive::channel::shared::{OneshotReceiver, oneshot_channel};

use super::Gpu;
use crate::scope::{Later, Scope};
use crate::{Buffers, Error, Extras, Operand, Problem, Scalar};

/// One call's operands on the device.
pub(super) struct Resident<'g> {
    gpu: &'g Gpu,
    scope: Later,
    buffers: Vec<(Operand, wgpu::Buffer)>,
}

/// A result on its way back: the staging buffer, and the word that it is mapped.
struct Readback {
    operand: Operand,
    staging: wgpu::Buffer,
    mapped: OneshotReceiver<Result<(), wgpu::BufferAsyncError>>,
}

impl<'g> Resident<'g> {
    pub fn new(gpu: &'g Gpu) -> Self {
        Resident { gpu, scope: Later::default(), buffers: Vec::new() }
    }

    /// An operand of which the kernels use the first `size` bytes of `bytes`, whole words.
    pub fn input(&mut self, operand: Operand, bytes: &[u8], size: u64) -> Result<(), Error> {
        self.memory(operand, size)?;
        let bytes = &bytes[..bytes.len().min(size as usize)];
        let (words, rest) = bytes.split_at(bytes.len() / 4 * 4);
        if let (Some((_, buffer)), false) = (self.buffers.last(), bytes.is_empty()) {
            let Gpu { device, queue, .. } = self.gpu;
            self.scope.run(device, || {
                queue.write_buffer(buffer, 0, words);
                if let [a, b] = *rest {
                    queue.write_buffer(buffer, words.len() as u64, &[a, b, 0, 0]);
                }
            })?;
        }
        Ok(())
    }

    /// Bias, mask and tables of a problem, as `on_device` has them.
    pub fn extras(
        &mut self,
        on_device: &Problem,
        problem: &Problem,
        extras: &Extras<'_>,
    ) -> Result<(), Error> {
        let size = |operand| on_device.bytes(operand);
        if let Some(bias) = extras.bias {
            self.input(Operand::Bias, bytemuck::cast_slice(bias), size(Operand::Bias))?;
        }
        for (operand, words) in
            [(Operand::Mask, extras.mask_words(problem)?), (Operand::Tables, extras.tables())]
        {
            if on_device.operands().contains(&operand) {
                self.input(operand, bytemuck::cast_slice(&words), size(operand))?;
            }
        }
        Ok(())
    }

    /// An operand that the kernels write, or working memory. Zeros.
    pub fn memory(&mut self, operand: Operand, size: u64) -> Result<(), Error> {
        let device = &self.gpu.device;
        let most = device.limits().max_buffer_size;
        if size > most {
            return Err(Error::Limit { what: operand.name(), need: size, got: most });
        }
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        let label = Some(format!("wgpu-attention {operand}"));
        let buffer = self.scope.run(device, || {
            let label = label.as_deref();
            let mapped_at_creation = false;
            device.create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation })
        })?;
        self.buffers.push((operand, buffer));
        Ok(())
    }

    /// Waits for the allocations: one that failed must be known before its buffer is used.
    pub async fn ready(&mut self) -> Result<Buffers<'_>, Error> {
        std::mem::take(&mut self.scope).outcome().await?;
        let all = Buffers::default();
        Ok(self.buffers.iter().fold(all, |all, (operand, buffer)| all.with(*operand, buffer)))
    }

    /// Submits what `record` records and hands every written operand's bytes to `store`.
    pub async fn run(
        self,
        record: impl FnOnce(&mut wgpu::CommandEncoder),
        mut store: impl FnMut(Operand, &[u8]),
    ) -> Result<(), Error> {
        let Gpu { device, queue, .. } = self.gpu;
        let mut scope = self.scope;
        let (readbacks, submission) = scope.run(device, || {
            let mut encoder = device.create_command_encoder(&Default::default());
            record(&mut encoder);
            let written = self.buffers.iter().filter(|(o, b)| o.is_written() && b.size() > 0);
            let staged: Vec<_> =
                written.map(|(o, buffer)| (*o, stage(device, &mut encoder, buffer))).collect();
            let submission = queue.submit([encoder.finish()]);
            (staged.into_iter().map(map).collect::<Vec<_>>(), submission)
        })?;
        scope.outcome().await?;
        done(device, submission).await?;
        for Readback { operand, staging, mapped } in readbacks {
            match mapped.receive().await {
                Some(Ok(())) => {}
                Some(Err(error)) => return Err(Error::DeviceLost(error.to_string())),
                None => return Err(Error::DeviceLost("the device dropped a readback".into())),
            }
            let view = staging.get_mapped_range(..);
            store(operand, &view.map_err(|error| Error::Device(error.to_string()))?);
        }
        Ok(())
    }
}

fn stage(
    device: &wgpu::Device,
    encoder: &mut wgpu::CommandEncoder,
    source: &wgpu::Buffer,
) -> wgpu::Buffer {
    let staging = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("wgpu-attention readback"),
        size: source.size(),
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    encoder.copy_buffer_to_buffer(source, 0, &staging, 0, source.size());
    staging
}

fn map((operand, staging): (Operand, wgpu::Buffer)) -> Readback {
    let (sender, mapped) = oneshot_channel();
    staging.map_async(wgpu::MapMode::Read, .., move |result| {
        let _ = sender.send(result); // Nobody waits any more: nothing to do.
    });
    Readback { operand, staging, mapped }
}

/// Waits for the work. A mapping is only reported while someone polls: here a thread, so that no
/// executor is blocked. A device lost meanwhile makes wgpu's poll fail or panic; both end here.
#[cfg(not(target_family = "wasm"))]
async fn done(device: &wgpu::Device, submission: wgpu::SubmissionIndex) -> Result<(), Error> {
    let (sender, polled) = oneshot_channel();
    let device = device.clone();
    let poll = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
    let wait = move || {
        let _ = sender.send(device.poll(poll).map(drop)); // Nobody waits any more: nothing to do.
    };
    if let Err(error) = std::thread::Builder::new().name("wgpu-attention".into()).spawn(wait) {
        return Err(Error::Device(format!("no thread to wait for the device: {error}")));
    }
    match polled.receive().await {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => Err(Error::DeviceLost(error.to_string())),
        None => Err(Error::DeviceLost("the device failed while it was waited for".into())),
    }
}

/// Browsers poll by themselves.
#[cfg(target_family = "wasm")]
async fn done(_: &wgpu::Device, _: wgpu::SubmissionIndex) -> Result<(), Error> {
    Ok(())
}

/// True if the device cannot even give a few bytes of mapped memory.
pub(super) fn is_lost(device: &wgpu::Device) -> bool {
    let probe = Later::default().run(device, || {
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgpu-attention probe"),
            size: 4,
            usage: wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        });
        buffer.get_mapped_range_mut(..).is_err()
    });
    probe.unwrap_or(true)
}

/// Copies the rows of O from where one problem lays them out to where another does.
pub(super) fn copy_rows<T: Scalar>(from: &[T], source: &Problem, to: &mut [T], target: &Problem) {
    let shape = source.shape();
    let [source, target] = [source, target].map(|problem| problem.layout_of(Operand::O));
    let dims = shape.value_dim as usize;
    for b in 0..shape.batch {
        for h in 0..shape.q_heads {
            for i in 0..shape.q_len {
                let (a, z) = (source.start([b, h, i]), target.start([b, h, i]));
                to[z..z + dims].copy_from_slice(&from[a..a + dims]);
            }
        }
    }
}
