//! The other program: a device of its own, passes of its own around the attention, one encoder,
//! one submit.

use std::sync::Arc;

use wgpu::util::DeviceExt;
use wgpu_attention::{Attention, Bound, Buffers, Description, Operand};

use super::colour::{self, Rgb};
use super::source::Source;

/// A device with no more than WebGPU's default limits.
pub struct Program {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

/// What the fragment shader writes into cells: ten digits side by side, one byte a pixel.
pub struct Digits {
    /// Pixels of one digit, across and down.
    pub size: [u32; 2],
    pub pixels: Vec<u8>,
}

/// A square heat map.
pub struct Heat {
    /// Pixels of its side.
    pub side: u32,
    pub pixels: Vec<Rgb>,
    /// What attention did.
    pub plan: Description,
}

const FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

impl Program {
    pub async fn new() -> Result<Program, String> {
        let descriptor = wgpu::InstanceDescriptor::new_without_display_handle().with_env();
        let instance = wgpu::Instance::new(descriptor);
        let adapter = instance.request_adapter(&Default::default()).await;
        let adapter = adapter.map_err(|error| format!("no adapter: {error}"))?;
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("embed"),
            required_limits: wgpu::Limits::default(),
            ..Default::default()
        };
        let device = adapter.request_device(&descriptor).await;
        let (device, queue) = device.map_err(|error| format!("no device: {error}"))?;
        device.on_uncaptured_error(Arc::new(|error| {
            eprintln!("embed: wgpu: {error}");
            std::process::exit(1);
        }));
        Ok(Program { device, queue })
    }

    pub fn adapter(&self) -> String {
        let info = self.device.adapter_info();
        format!("{} ({:?})", info.name, info.backend)
    }

    /// Queries, keys and values; attention; heat map.
    pub fn run(&self, source: &Source, cell: u32, digits: &Digits) -> Result<Heat, String> {
        let attention = Attention::new(&self.device);
        let plan = attention.plan(&source.problem()).map_err(|error| error.to_string())?;
        let problem = plan.problem();
        let storage = |label: &str, bytes: u64| self.storage(label, bytes);
        // V's layout ends where the packed rows end.
        let qkv = storage("qkv", 4 * problem.elements(Operand::V));
        let o = storage("o", 4 * problem.elements(Operand::O));
        let weights = storage("weights", 4 * problem.elements(Operand::Weights));
        let scratch = storage("scratch", plan.scratch_bytes());
        let buffers = Buffers::new(&qkv, &qkv, &qkv, &o)
            .with(Operand::Weights, &weights)
            .with(Operand::Scratch, &scratch);
        let bound = plan.bind(buffers).map_err(|error| error.to_string())?;

        let tokens = source.tokens.len() as u32;
        let side = tokens * cell;
        let texture = self.target(side);
        // Rows of a copy begin on a multiple of 256 bytes.
        let pitch = (4 * side).next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT);
        let readback = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("picture"),
            size: u64::from(pitch) * u64::from(side),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });

        let mut encoder = self.device.create_command_encoder(&Default::default());
        self.encode_before(&mut encoder, source, &qkv);
        encode_attention(&mut encoder, &bound);
        let shape = problem.shape();
        let first = source.head * shape.q_len * shape.kv_len;
        let [wide, high] = digits.size;
        let sizes = [tokens, cell, first, u32::from(source.causal), wide, high];
        self.encode_after(&mut encoder, &texture, &weights, &sizes, digits);
        encoder.copy_texture_to_buffer(
            texture.as_image_copy(),
            wgpu::TexelCopyBufferInfo {
                buffer: &readback,
                layout: wgpu::TexelCopyBufferLayout {
                    offset: 0,
                    bytes_per_row: Some(pitch),
                    rows_per_image: None,
                },
            },
            texture.size(),
        );
        // A mapping that fails shows when the range is asked for.
        encoder.map_buffer_on_submit(&readback, wgpu::MapMode::Read, .., drop);
        let submission = self.queue.submit([encoder.finish()]);

        let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
        self.device.poll(wait).map_err(|error| error.to_string())?;
        let view = readback.get_mapped_range(..).map_err(|error| error.to_string())?;
        let row = |row: &[u8]| {
            let pixels = row[..4 * side as usize].chunks_exact(4);
            pixels.map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect::<Vec<Rgb>>()
        };
        let pixels = view.chunks_exact(pitch as usize).flat_map(row).collect();
        Ok(Heat { side, pixels, plan: plan.describe() })
    }

    /// The program's compute pass.
    fn encode_before(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        source: &Source,
        qkv: &wgpu::Buffer,
    ) {
        let pass = &source.pass;
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(pass.name),
            layout: None,
            module: &self.module(pass.name, pass.wgsl),
            entry_point: Some(pass.name),
            compilation_options: Default::default(),
            cache: None,
        });
        let mut buffers = vec![self.uniform(&pass.sizes)];
        buffers.extend(pass.inputs.iter().map(|input| {
            self.filled(pass.name, bytemuck::cast_slice(input), wgpu::BufferUsages::STORAGE)
        }));
        let resources = buffers.iter().chain([qkv]).map(wgpu::Buffer::as_entire_binding);
        let group = self.group(&pipeline.get_bind_group_layout(0), resources);
        let descriptor =
            wgpu::ComputePassDescriptor { label: Some(pass.name), timestamp_writes: None };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups((qkv.size() as u32 / 4).div_ceil(64), 1, 1);
    }

    /// The program's render pass. The weights are read where attention left them.
    fn encode_after(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        target: &wgpu::Texture,
        weights: &wgpu::Buffer,
        sizes: &[u32],
        digits: &Digits,
    ) {
        let module = self.module("heat", include_str!("heat.wgsl"));
        let pipeline = self.device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("heat"),
            layout: None,
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: Some("cover"),
                compilation_options: Default::default(),
                buffers: &[],
            },
            primitive: Default::default(),
            depth_stencil: None,
            multisample: Default::default(),
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: Some("heat"),
                compilation_options: Default::default(),
                targets: &[Some(FORMAT.into())],
            }),
            multiview_mask: None,
            cache: None,
        });
        let colours: Vec<u8> = colour::map().iter().flat_map(|&[r, g, b]| [r, g, b, 255]).collect();
        let colours = self.image(FORMAT, [colour::STEPS as u32, 1], &colours);
        let [wide, high] = digits.size;
        let strip = self.image(wgpu::TextureFormat::R8Unorm, [10 * wide, high], &digits.pixels);
        let uniform = self.uniform(sizes);
        let resources = [
            uniform.as_entire_binding(),
            weights.as_entire_binding(),
            wgpu::BindingResource::TextureView(&colours),
            wgpu::BindingResource::TextureView(&strip),
        ];
        let group = self.group(&pipeline.get_bind_group_layout(0), resources);
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("heat"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: &target.create_view(&Default::default()),
                depth_slice: None,
                resolve_target: None,
                ops: Default::default(),
            })],
            ..Default::default()
        });
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.draw(0..3, 0..1);
    }
}

/// The crate's part.
fn encode_attention(encoder: &mut wgpu::CommandEncoder, bound: &Bound) {
    let descriptor =
        wgpu::ComputePassDescriptor { label: Some("attention"), timestamp_writes: None };
    bound.encode(&mut encoder.begin_compute_pass(&descriptor));
}

/// What every wgpu program has.
impl Program {
    fn module(&self, label: &str, wgsl: &str) -> wgpu::ShaderModule {
        let source = wgpu::ShaderSource::Wgsl(wgsl.into());
        let descriptor = wgpu::ShaderModuleDescriptor { label: Some(label), source };
        self.device.create_shader_module(descriptor)
    }

    fn storage(&self, label: &str, bytes: u64) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: bytes,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        })
    }

    fn filled(&self, label: &str, contents: &[u8], usage: wgpu::BufferUsages) -> wgpu::Buffer {
        let descriptor = wgpu::util::BufferInitDescriptor { label: Some(label), contents, usage };
        self.device.create_buffer_init(&descriptor)
    }

    /// Uniforms end on a multiple of 16 bytes.
    fn uniform(&self, numbers: &[u32]) -> wgpu::Buffer {
        let mut numbers = numbers.to_vec();
        numbers.resize(numbers.len().next_multiple_of(4), 0);
        let bytes = bytemuck::cast_slice(&numbers);
        self.filled("sizes", bytes, wgpu::BufferUsages::UNIFORM)
    }

    /// Bindings from 0 on.
    fn group<'a>(
        &self,
        layout: &wgpu::BindGroupLayout,
        resources: impl IntoIterator<Item = wgpu::BindingResource<'a>>,
    ) -> wgpu::BindGroup {
        let entry = |(binding, resource)| wgpu::BindGroupEntry { binding, resource };
        let entries: Vec<_> = (0..).zip(resources).map(entry).collect();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout, entries: &entries };
        self.device.create_bind_group(&descriptor)
    }

    fn target(&self, side: u32) -> wgpu::Texture {
        let usage = wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC;
        self.device.create_texture(&texture("picture", FORMAT, [side, side], usage))
    }

    fn image(
        &self,
        format: wgpu::TextureFormat,
        size: [u32; 2],
        bytes: &[u8],
    ) -> wgpu::TextureView {
        let descriptor = texture("image", format, size, wgpu::TextureUsages::TEXTURE_BINDING);
        let order = wgpu::util::TextureDataOrder::LayerMajor;
        let image = self.device.create_texture_with_data(&self.queue, &descriptor, order, bytes);
        image.create_view(&Default::default())
    }
}

fn texture(
    label: &str,
    format: wgpu::TextureFormat,
    [width, height]: [u32; 2],
    usage: wgpu::TextureUsages,
) -> wgpu::TextureDescriptor<'_> {
    wgpu::TextureDescriptor {
        label: Some(label),
        size: wgpu::Extent3d { width, height, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format,
        usage,
        view_formats: &[],
    }
}
