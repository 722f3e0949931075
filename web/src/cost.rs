//! What a call costs: operands that stay on the GPU, one submit a run.

use futures_intrusive::channel::shared::oneshot_channel;
use wasm_bindgen::prelude::*;
use wgpu_attention::{
    Bound, Buffers, Choice, Error, Gpu, Inputs, Method, Operand, Plan, Problem, Shape, cpu, wgpu,
};

use crate::{Engine, told};

/// Numbers in a token's query, key and value.
const DIM: u32 = 64;
/// Rows that are checked against the reference: the first, the last, and evenly between.
const CHECKED: u64 = 8;
/// Largest absolute error against f64.
const TOLERANCE: f32 = 1e-5;

/// Self-attention over so many tokens, ready to be run and timed.
#[wasm_bindgen]
pub struct Run {
    gpu: Gpu,
    bound: Bound,
    bytes: u64,
    /// q, k, v, o and working memory.
    buffers: [wgpu::Buffer; 5],
    operands: [Vec<f32>; 3],
    problem: Problem,
}

#[wasm_bindgen]
impl Engine {
    /// Memory beyond Q, K and V, in bytes.
    ///
    /// # Errors
    /// What does not fit the device's limits.
    pub async fn memory(&self, heads: u32, tokens: u32, fused: bool) -> Result<f64, JsError> {
        let problem = problem(heads, tokens);
        Ok(bytes(&self.plan(&problem, fused).await.map_err(told)?) as f64)
    }

    /// Plans, uploads `numbers` (normal(0, 1), `heads * tokens * 64` of each of q, k and v) and
    /// binds.
    ///
    /// # Errors
    /// As [`Engine::memory`]; a device that is out of memory or lost.
    pub async fn prepare(
        &self,
        heads: u32,
        tokens: u32,
        fused: bool,
        numbers: Vec<f32>,
    ) -> Result<Run, JsError> {
        let problem = problem(heads, tokens);
        let plan = self.plan(&problem, fused).await.map_err(told)?;
        let gpu = self.gpu().ok_or_else(|| JsError::new(NO_GPU))?;
        Run::new(gpu, &plan, numbers).await.map_err(told)
    }
}

const NO_GPU: &str = "needs WebGPU";

impl Engine {
    async fn plan(&self, problem: &Problem, fused: bool) -> Result<Plan, Error> {
        let gpu = self.gpu().ok_or_else(|| Error::NoAdapter(NO_GPU.into()))?;
        let method = if fused { Method::Flash } else { Method::Staged };
        gpu.planner().plan_async(problem, Choice::method(method)).await
    }
}

fn problem(heads: u32, tokens: u32) -> Problem {
    Problem::new(Shape::self_attention(1, heads, tokens, DIM))
}

fn bytes(plan: &Plan) -> u64 {
    4 * plan.problem().elements(Operand::O) + plan.scratch_bytes() + plan.owned_bytes()
}

impl Run {
    async fn new(gpu: &Gpu, plan: &Plan, numbers: Vec<f32>) -> Result<Run, Error> {
        let problem = plan.problem().clone();
        let count = problem.elements(Operand::Q) as usize;
        if numbers.len() != 3 * count {
            let (operand, need, got) = (Operand::Q, 3 * count as u64, numbers.len() as u64);
            return Err(Error::Length { operand, need, got });
        }
        let operands = [0, 1, 2].map(|at| numbers[at * count..][..count].to_vec());
        let buffer = |size| {
            gpu.device().create_buffer(&wgpu::BufferDescriptor {
                label: Some("cost"),
                size,
                usage: wgpu::BufferUsages::STORAGE
                    | wgpu::BufferUsages::COPY_SRC
                    | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        let scope = gpu.device().push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let size = 4 * count as u64;
        let sizes = [size, size, size, size, plan.scratch_bytes()];
        let buffers = sizes.map(buffer);
        for (buffer, numbers) in buffers.iter().zip(&operands) {
            gpu.queue().write_buffer(buffer, 0, bytemuck::cast_slice(numbers));
        }
        if let Some(error) = scope.pop().await {
            return Err(Error::Device(error.to_string()));
        }
        let [q, k, v, o, scratch] = &buffers;
        let bound =
            plan.bind_async(Buffers::new(q, k, v, o).with(Operand::Scratch, scratch)).await?;
        Ok(Run { gpu: gpu.clone(), bound, bytes: bytes(plan), buffers, operands, problem })
    }
}

/// The browser frees buffers when it collects garbage, which may be late: stored scores are large.
impl Drop for Run {
    fn drop(&mut self) {
        self.buffers.iter().for_each(wgpu::Buffer::destroy);
    }
}

#[wasm_bindgen]
impl Run {
    /// Memory beyond Q, K and V, in bytes.
    #[wasm_bindgen(getter)]
    pub fn bytes(&self) -> f64 {
        self.bytes as f64
    }

    /// Records, submits and waits until the GPU is done.
    pub async fn once(&self) {
        let mut encoder = self.gpu.device().create_command_encoder(&Default::default());
        self.bound.encode_in(&mut encoder);
        self.gpu.queue().submit([encoder.finish()]);
        let (sender, done) = oneshot_channel();
        self.gpu.queue().on_submitted_work_done(move || {
            let _ = sender.send(()); // Nobody waits any more: nothing to do.
        });
        done.receive().await;
    }

    /// The largest absolute error of a few rows of the last run against the reference in f64.
    ///
    /// # Errors
    /// An error above 1e-5, or a device that is lost.
    pub async fn check(&self) -> Result<f32, JsError> {
        let got = self.read().await.map_err(told)?;
        let [q, k, v] = &self.operands;
        let shape = self.problem.shape();
        let last = u64::from(shape.q_heads) * u64::from(shape.q_len) - 1;
        let mut largest = 0.0f32;
        for at in (0..CHECKED).map(|at| at * last / (CHECKED - 1)) {
            let (head, token) = (at / u64::from(shape.q_len), at % u64::from(shape.q_len));
            let index = [0, head as u32, token as u32];
            let want = cpu::row(&self.problem, Inputs::new(q, k, v), index).map_err(told)?.o;
            let got = &got[(at * u64::from(DIM)) as usize..][..DIM as usize];
            for (got, want) in got.iter().zip(want) {
                let error = (f64::from(*got) - want).abs() as f32;
                largest = if error.is_nan() { f32::INFINITY } else { largest.max(error) };
            }
        }
        if largest > TOLERANCE {
            return Err(JsError::new(&format!("wrong by {largest:.1e}")));
        }
        Ok(largest)
    }

    async fn read(&self) -> Result<Vec<f32>, Error> {
        let device = self.gpu.device();
        let [.., o, _] = &self.buffers;
        let staging = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("cost readback"),
            size: o.size(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(o, 0, &staging, 0, o.size());
        self.gpu.queue().submit([encoder.finish()]);
        let (sender, mapped) = oneshot_channel();
        staging.map_async(wgpu::MapMode::Read, .., move |result| {
            let _ = sender.send(result); // Nobody waits any more: nothing to do.
        });
        if let Some(Err(error)) = mapped.receive().await {
            return Err(Error::DeviceLost(error.to_string()));
        }
        let view = staging.get_mapped_range(..);
        let view = view.map_err(|error| Error::Device(error.to_string()))?;
        Ok(bytemuck::pod_collect_to_vec(&view))
    }
}
