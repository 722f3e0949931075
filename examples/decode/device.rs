//! What this program does on the device besides recording: buffers, submitting, reading back.

use wgpu_attention::{Error, Gpu};

/// A buffer that kernels use and this program fills and reads.
pub fn buffer(gpu: &Gpu, bytes: u64) -> wgpu::Buffer {
    use wgpu::BufferUsages as Usage;
    gpu.device().create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes.max(4),
        usage: Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC,
        mapped_at_creation: false,
    })
}

/// The same with f32 numbers in it.
pub fn upload(gpu: &Gpu, numbers: &[f32]) -> wgpu::Buffer {
    let to = buffer(gpu, size_of_val(numbers) as u64);
    gpu.queue().write_buffer(&to, 0, bytemuck::cast_slice(numbers));
    to
}

/// Submits, and waits until the GPU is done.
pub fn submit(gpu: &Gpu, encoder: wgpu::CommandEncoder) -> Result<(), Error> {
    let submission = gpu.queue().submit([encoder.finish()]);
    let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
    gpu.device().poll(wait).map_err(|error| Error::DeviceLost(error.to_string()))?;
    Ok(())
}

/// The f32 numbers of a buffer.
pub fn read(gpu: &Gpu, from: &wgpu::Buffer) -> Result<Vec<f32>, Error> {
    let staging = gpu.device().create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: from.size(),
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = gpu.device().create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(from, 0, &staging, 0, from.size());
    // A mapping that fails shows when the range is asked for.
    encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., drop);
    submit(gpu, encoder)?;
    let view = staging.get_mapped_range(..).map_err(|error| Error::Device(error.to_string()))?;
    Ok(bytemuck::pod_collect_to_vec(&view))
}
