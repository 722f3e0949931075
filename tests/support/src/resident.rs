//! One attention call whose operands stay on the GPU: bound once, run many times, read back.

use rand::{SeedableRng, rngs::StdRng};
use rand_distr::{Distribution, StandardNormal};
use wgpu_attention::{Bound, Buffers, Error, Gpu, Inputs, Operand, Plan, Problem, half::f16};

/// Q, K and V on the host.
pub struct Operands {
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
}

impl Operands {
    /// normal(0, 1) numbers, the same on every run.
    pub fn normal(problem: &Problem) -> Operands {
        let part = |operand: Operand| {
            let mut rng = StdRng::seed_from_u64(operand as u64);
            let count = problem.elements(operand) as usize;
            StandardNormal.sample_iter(&mut rng).take(count).collect()
        };
        Operands { q: part(Operand::Q), k: part(Operand::K), v: part(Operand::V) }
    }

    /// To what f16 can hold.
    pub fn round(&mut self) {
        for x in self.q.iter_mut().chain(&mut self.k).chain(&mut self.v) {
            *x = f16::from_f32(*x).to_f32();
        }
    }

    pub fn inputs(&self) -> Inputs<'_> {
        Inputs::new(&self.q, &self.k, &self.v)
    }
}

/// A plan of f32 or f16 operands, bound to buffers that hold them.
pub struct Resident<'a> {
    gpu: &'a Gpu,
    bound: Bound,
    o: wgpu::Buffer,
    halves: bool,
}

impl<'a> Resident<'a> {
    pub fn new(gpu: &'a Gpu, plan: &Plan, inputs: Inputs<'_>) -> Result<Resident<'a>, Error> {
        let buffer = |bytes: u64| {
            gpu.device().create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: bytes,
                usage: wgpu::BufferUsages::STORAGE
                    | wgpu::BufferUsages::COPY_SRC
                    | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        let bytes = plan.problem().bytes(Operand::O);
        let halves = bytes < 4 * plan.problem().elements(Operand::O);
        let upload = |numbers: &[f32]| {
            let rounded: Vec<f16>;
            let bytes: &[u8] = if halves {
                rounded = numbers.iter().map(|&x| f16::from_f32(x)).collect();
                bytemuck::cast_slice(&rounded)
            } else {
                bytemuck::cast_slice(numbers)
            };
            let to = buffer(bytes.len() as u64);
            gpu.queue().write_buffer(&to, 0, bytes);
            to
        };
        let (q, k, v) = (upload(inputs.q), upload(inputs.k), upload(inputs.v));
        let o = buffer(bytes);
        let scratch = buffer(plan.scratch_bytes());
        let buffers = Buffers::new(&q, &k, &v, &o).with(Operand::Scratch, &scratch);
        Ok(Resident { gpu, bound: plan.bind(buffers)?, o, halves })
    }

    /// Records, submits and waits until the GPU is done.
    pub fn run(&self) -> Result<(), Error> {
        let mut encoder = self.gpu.device().create_command_encoder(&Default::default());
        self.bound.encode_in(&mut encoder);
        self.submit(encoder)
    }

    /// What the last run left in O.
    pub fn read(&self) -> Result<Vec<f32>, Error> {
        let device = self.gpu.device();
        let staging = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: self.o.size(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(&self.o, 0, &staging, 0, self.o.size());
        // A mapping that fails shows when the range is asked for.
        encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., drop);
        self.submit(encoder)?;
        let view =
            staging.get_mapped_range(..).map_err(|error| Error::Device(error.to_string()))?;
        if self.halves {
            let halves: Vec<f16> = bytemuck::pod_collect_to_vec(&view);
            return Ok(halves.into_iter().map(f16::to_f32).collect());
        }
        Ok(bytemuck::pod_collect_to_vec(&view))
    }

    fn submit(&self, encoder: wgpu::CommandEncoder) -> Result<(), Error> {
        let submission = self.gpu.queue().submit([encoder.finish()]);
        let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
        self.gpu.device().poll(wait).map_err(|error| Error::DeviceLost(error.to_string()))?;
        Ok(())
    }
}
