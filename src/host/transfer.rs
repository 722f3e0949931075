//! Slices to buffers, one submit, buffers to slices.

use futures_intrusive::channel::shared::{OneshotReceiver, oneshot_channel};

use super::Gpu;
use super::spare::{Spare, Use};
use crate::scope::{Later, Scope};
use crate::{Buffers, Error, Extras, Operand, Problem, Scalar};

/// One call's operands on the device.
pub(super) struct Resident<'g> {
    gpu: &'g Gpu,
    scope: Later,
    held: Vec<Held>,
}

struct Held {
    operand: Operand,
    buffer: wgpu::Buffer,
    /// Holds what an earlier call has left.
    used: bool,
    upload: Option<wgpu::Buffer>,
}

/// A buffer that the host will read or write next: the word that it is mapped.
struct Mapping {
    operand: Operand,
    kind: Use,
    buffer: wgpu::Buffer,
    mapped: OneshotReceiver<Result<(), wgpu::BufferAsyncError>>,
}

impl<'g> Resident<'g> {
    pub fn new(gpu: &'g Gpu) -> Self {
        Resident { gpu, scope: Later::default(), held: Vec::new() }
    }

    /// An operand of which the kernels use the first `size` bytes of `bytes`, whole words.
    pub fn input(&mut self, operand: Operand, bytes: &[u8], size: u64) -> Result<(), Error> {
        self.memory(operand, size)?;
        let bytes = &bytes[..bytes.len().min(size as usize)];
        if bytes.is_empty() {
            return Ok(());
        }
        self.fill(bytes, size)
    }

    /// Fills the newest operand: from mapped memory that is kept for the next call.
    #[cfg(not(target_family = "wasm"))]
    fn fill(&mut self, bytes: &[u8], size: u64) -> Result<(), Error> {
        let upload = self.buffer(Use::Upload, size.next_multiple_of(4), "upload")?.0;
        let view = upload.get_mapped_range_mut(..);
        let mut view = view.map_err(|error| Error::Device(error.to_string()))?;
        view.slice(..bytes.len()).copy_from_slice(bytes);
        // The other half of a last word.
        let end = bytes.len().next_multiple_of(4);
        view.slice(bytes.len()..end).copy_from_slice(&[0; 3][..end - bytes.len()]);
        drop(view);
        upload.unmap();
        if let Some(held) = self.held.last_mut() {
            held.upload = Some(upload);
        }
        Ok(())
    }

    /// Fills the newest operand: browsers keep what this takes.
    #[cfg(target_family = "wasm")]
    fn fill(&mut self, bytes: &[u8], _: u64) -> Result<(), Error> {
        let (words, rest) = bytes.split_at(bytes.len() / 4 * 4);
        let Gpu { device, queue, .. } = self.gpu;
        let Some(Held { buffer, .. }) = self.held.last() else { return Ok(()) };
        self.scope.run(device, || {
            queue.write_buffer(buffer, 0, words);
            if let [a, b] = *rest {
                queue.write_buffer(buffer, words.len() as u64, &[a, b, 0, 0]);
            }
        })
    }

    /// One that an earlier call has left, and true, or a new one.
    fn buffer(&mut self, kind: Use, size: u64, what: &str) -> Result<(wgpu::Buffer, bool), Error> {
        if let Some(buffer) = self.gpu.spare.take(kind, size) {
            return Ok((buffer, true));
        }
        let (device, label) = (&self.gpu.device, format!("wgpu-attention {what}"));
        let buffer = self.scope.run(device, || Spare::make(device, kind, size, &label))?;
        Ok((buffer, false))
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
        let most = self.gpu.device.limits().max_buffer_size;
        if size > most {
            return Err(Error::Limit { what: operand.name(), need: size, got: most });
        }
        let (buffer, used) = self.buffer(Use::Operand, size, operand.name())?;
        self.held.push(Held { operand, buffer, used, upload: None });
        Ok(())
    }

    /// Waits for the allocations: one that failed must be known before its buffer is used.
    pub async fn ready(&mut self) -> Result<Buffers<'_>, Error> {
        std::mem::take(&mut self.scope).outcome().await?;
        let all = Buffers::default();
        Ok(self.held.iter().fold(all, |all, held| all.with(held.operand, &held.buffer)))
    }

    /// Submits what `record` records and hands every written operand's bytes to `store`.
    pub async fn run(
        mut self,
        record: impl FnOnce(&mut wgpu::CommandEncoder),
        mut store: impl FnMut(Operand, &[u8]),
    ) -> Result<(), Error> {
        let Gpu { device, queue, spare, .. } = self.gpu;
        let mut readbacks = Vec::new();
        for at in 0..self.held.len() {
            let (operand, size) = (self.held[at].operand, self.held[at].buffer.size());
            if operand.is_written() && size > 0 {
                readbacks.push((at, self.buffer(Use::Readback, size, "readback")?.0));
            }
        }
        let mut scope = self.scope;
        let held = self.held;
        let (mappings, submission) = scope.run(device, || {
            let mut encoder = device.create_command_encoder(&Default::default());
            for Held { operand, buffer, used, upload } in &held {
                match upload {
                    Some(upload) => {
                        let size = upload.size().min(buffer.size());
                        encoder.copy_buffer_to_buffer(upload, 0, buffer, 0, size);
                    }
                    // Between its rows an output is zero.
                    None if *used && operand.is_written() => {
                        encoder.clear_buffer(buffer, 0, None);
                    }
                    None => {}
                }
            }
            record(&mut encoder);
            for (at, readback) in &readbacks {
                let from = &held[*at].buffer;
                encoder.copy_buffer_to_buffer(from, 0, readback, 0, from.size());
            }
            let submission = queue.submit([encoder.finish()]);
            let readbacks = readbacks.into_iter();
            let readbacks =
                readbacks.map(|(at, buffer)| map(held[at].operand, Use::Readback, buffer));
            let uploads = held.iter().filter_map(|held| Some((held.operand, held.upload.clone()?)));
            let uploads = uploads.map(|(operand, buffer)| map(operand, Use::Upload, buffer));
            (readbacks.chain(uploads).collect::<Vec<_>>(), submission)
        })?;
        scope.outcome().await?;
        done(device, submission).await?;
        for Mapping { operand, kind, buffer, mapped } in mappings {
            match mapped.receive().await {
                Some(Ok(())) => {}
                Some(Err(error)) => return Err(Error::DeviceLost(error.to_string())),
                None => return Err(Error::DeviceLost("the device dropped a readback".into())),
            }
            if kind == Use::Readback {
                let view = buffer.get_mapped_range(..);
                let view = view.map_err(|error| Error::Device(error.to_string()))?;
                store(operand, &view);
                drop(view);
                buffer.unmap();
            }
            spare.give(kind, buffer);
        }
        held.into_iter().for_each(|held| spare.give(Use::Operand, held.buffer));
        Ok(())
    }
}

fn map(operand: Operand, kind: Use, buffer: wgpu::Buffer) -> Mapping {
    let mode = if kind == Use::Upload { wgpu::MapMode::Write } else { wgpu::MapMode::Read };
    let (sender, mapped) = oneshot_channel();
    buffer.map_async(mode, .., move |result| {
        let _ = sender.send(result); // Nobody waits any more: nothing to do.
    });
    Mapping { operand, kind, buffer, mapped }
}

/// Waits for the work. A mapping is only reported while someone polls: here a thread, so that no
/// executor is blocked. A device lost meanwhile makes wgpu's poll fail or panic; both end here.
#[cfg(not(target_family = "wasm"))]
pub(super) async fn done(
    device: &wgpu::Device,
    submission: wgpu::SubmissionIndex,
) -> Result<(), Error> {
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
