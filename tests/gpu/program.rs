//! Another program: a device of its own, its own buffers and submits, and an eye on everything
//! that wgpu says and nobody catches.

use std::sync::{Arc, Mutex};

use wgpu_attention::{Attention, Error, Inputs, LoopLimit, Operand, Output, Problem, Tile, cpu};

use crate::support::{PerLane, max_error};

/// What a buffer needs so that kernels can use it and this program can fill and read it.
pub const USAGE: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE
    .union(wgpu::BufferUsages::COPY_SRC)
    .union(wgpu::BufferUsages::COPY_DST);

/// Loop iterations so few that keys are split after 32 or 64 at small dims.
pub const FEW: LoopLimit = LoopLimit::Iterations(250);

pub struct Program {
    pub instance: wgpu::Instance,
    pub adapter: wgpu::Adapter,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    /// As `Attention::new` makes it.
    pub attention: Attention,
    /// The same device with splits of a few keys.
    pub split: Attention,
    uncaptured: Arc<Mutex<Vec<String>>>,
}

impl Program {
    /// A program on an instance of its own.
    pub fn new(limits: wgpu::Limits) -> Program {
        let descriptor = wgpu::InstanceDescriptor::new_without_display_handle().with_env();
        let instance = wgpu::Instance::new(descriptor);
        let adapter = pollster::block_on(instance.request_adapter(&Default::default()));
        let adapter = adapter.expect("an adapter: on Debian install mesa-vulkan-drivers");
        Program::on(instance, adapter, limits, wgpu::Features::empty())
    }

    /// Another device of the same instance.
    pub fn neighbour(&self, limits: wgpu::Limits) -> Program {
        let features = wgpu::Features::empty();
        Program::on(self.instance.clone(), self.adapter.clone(), limits, features)
    }

    /// A program for all tests that need nothing special: pipelines are compiled once.
    pub fn shared() -> &'static Program {
        static PROGRAM: PerLane<Program> = PerLane::new();
        PROGRAM.get_or_init(|| Program::new(wgpu::Limits::default()))
    }

    /// The same with what `broadcast` needs, where the adapter has it.
    pub fn with_subgroups() -> &'static Program {
        static PROGRAM: PerLane<Program> = PerLane::new();
        PROGRAM.get_or_init(|| {
            let Program { instance, adapter, .. } = Program::shared();
            let features = adapter.features() & wgpu::Features::SUBGROUP;
            Program::on(instance.clone(), adapter.clone(), wgpu::Limits::default(), features)
        })
    }

    fn on(
        instance: wgpu::Instance,
        adapter: wgpu::Adapter,
        required_limits: wgpu::Limits,
        required_features: wgpu::Features,
    ) -> Program {
        let descriptor =
            wgpu::DeviceDescriptor { required_limits, required_features, ..Default::default() };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .expect("a device with these limits");
        let uncaptured = Arc::<Mutex<Vec<String>>>::default();
        let seen = uncaptured.clone();
        device.on_uncaptured_error(Arc::new(move |error| {
            seen.lock().expect("no panic").push(error.to_string());
        }));
        let attention = Attention::new(&device);
        let split = attention.clone().with_loop_limit(FEW);
        Program { instance, adapter, device, queue, attention, split, uncaptured }
    }

    /// A buffer that holds these words.
    pub fn buffer(&self, words: &[f32]) -> wgpu::Buffer {
        let buffer = self.empty(words.len() as u64 * 4, USAGE);
        self.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(words));
        buffer
    }

    pub fn empty(&self, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    }

    /// Records and submits.
    pub fn submit(&self, record: impl FnOnce(&mut wgpu::CommandEncoder)) {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        record(&mut encoder);
        self.queue.submit([encoder.finish()]);
        self.check();
    }

    /// A buffer's words, after all that was submitted.
    pub fn read(&self, buffer: &wgpu::Buffer) -> Vec<f32> {
        if buffer.size() == 0 {
            return Vec::new();
        }
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = self.empty(buffer.size(), usage);
        self.submit(|encoder| {
            encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
        });
        staging.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("a mapping"));
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("a live device");
        let words = bytemuck::pod_collect_to_vec(&staging.get_mapped_range(..).expect("mapped"));
        self.check();
        words
    }

    /// Nothing must have reached the device's own error handler.
    pub fn check(&self) {
        assert_eq!(self.uncaptured(), Vec::<String>::new());
    }

    /// What reached the handler since the last look.
    pub fn uncaptured(&self) -> Vec<String> {
        std::mem::take(&mut *self.uncaptured.lock().expect("no panic"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check();
        }
    }
}

/// What the CPU computes, and how far each part may be off: 8 times what the f32 twin is off, and
/// not less than a few roundings of the largest value.
pub struct Reference {
    pub want: Output,
    twin: Output,
}

impl Reference {
    pub fn new(problem: &Problem, inputs: Inputs<'_>) -> Result<Reference, Error> {
        let tile = Tile { queries: 32, keys: 32 };
        let want = cpu::attention(problem, inputs)?;
        Ok(Reference { want, twin: cpu::flash(problem, inputs, tile, None)? })
    }

    /// One part, `None` if the problem does not have it.
    pub fn part(&self, operand: Operand) -> Option<&[f32]> {
        part(&self.want, operand)
    }

    /// The largest error allowed.
    pub fn tolerance(&self, operand: Operand) -> f32 {
        let want = self.part(operand).unwrap_or(&[]);
        let finite = want.iter().filter(|x| x.is_finite());
        let largest = finite.fold(1.0f32, |most, x| most.max(x.abs()));
        // The twin forms no scores and no weights: they get a dot product's roundings.
        match part(&self.twin, operand) {
            Some(twin) => (8.0 * max_error(twin, want)).max(1.5e-6 * largest),
            None => 1e-5 * largest,
        }
    }
}

fn part(output: &Output, operand: Operand) -> Option<&[f32]> {
    match operand {
        Operand::O => Some(&output.o),
        Operand::Lse => output.lse.as_deref(),
        Operand::Scores => output.scores.as_deref(),
        Operand::Weights => output.weights.as_deref(),
        _ => None,
    }
}
