//! This library: operands in storage buffers, or K and V in its cache.

use wgpu_attention::{
    Append, Attention, Bound, Buffers, CacheShape, Gpu, KvCache, Operand, Problem, Tile, wgpu,
};

use crate::case::{Case, Kind};
use crate::compare::{Peer, seconds};

pub struct Ours {
    gpu: Gpu,
    problem: Problem,
    memory: Memory,
    q: wgpu::Buffer,
    o: wgpu::Buffer,
    staging: wgpu::Buffer,
    rows: Vec<f32>,
    /// From the first call on.
    bound: Option<Bound>,
}

/// Where keys and values lie.
enum Memory {
    Buffers([wgpu::Buffer; 2]),
    Cache(Box<KvCache>),
}

impl Ours {
    pub fn new(gpu: &Gpu, case: &Case) -> Result<Ours, String> {
        // A planner of its own for each case: its first call finds nothing compiled.
        let gpu = gpu.clone().with_attention(Attention::new(gpu.device()));
        let kv = [&case.k, &case.v].map(|rows| {
            let buffer = storage(&gpu, rows.len());
            gpu.queue().write_buffer(&buffer, 0, bytemuck::cast_slice(rows));
            buffer
        });
        let (problem, memory) = match case.kind {
            Kind::Prefill { .. } => (case.problem(), Memory::Buffers(kv)),
            Kind::Decode => {
                let shape = CacheShape::new(1, case.heads, case.keys, case.dim);
                let cache = cache(&gpu, shape, kv).map_err(|error| error.to_string())?;
                // Every row sees every key, as with the others.
                let problem = shape.problem(case.heads, case.rows);
                (problem.band(Default::default()), Memory::Cache(cache.into()))
            }
        };
        let (q, o) = (storage(&gpu, case.q.len()), storage(&gpu, case.q.len()));
        gpu.queue().write_buffer(&q, 0, bytemuck::cast_slice(&case.q));
        gpu.queue().submit([]);
        wait(&gpu);
        let staging =
            buffer(&gpu, case.q.len(), wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let rows = case.q.clone();
        Ok(Ours { gpu, problem, memory, q, o, staging, rows, bound: None })
    }

    fn bind(&self) -> Result<Bound, wgpu_attention::Error> {
        let plan = self.gpu.planner().plan(&self.problem)?;
        let scratch = storage(&self.gpu, plan.scratch_bytes() as usize / 4 + 1);
        let buffers = match &self.memory {
            Memory::Buffers([k, v]) => Buffers::new(&self.q, k, v, &self.o),
            Memory::Cache(cache) => Buffers::cached(&self.q, cache, &self.o),
        };
        plan.bind(buffers.with(Operand::Scratch, &scratch))
    }

    fn submit(&self, finish: impl FnOnce(&mut wgpu::CommandEncoder)) {
        let mut encoder = self.gpu.device().create_command_encoder(&Default::default());
        self.bound.as_ref().expect("a first call").encode_in(&mut encoder);
        finish(&mut encoder);
        self.gpu.queue().submit([encoder.finish()]);
    }
}

impl Peer for Ours {
    fn name(&self) -> String {
        let Some(bound) = &self.bound else { return "wgpu-attention".into() };
        let plan = bound.plan().describe();
        let Tile { queries, keys } = plan.tile;
        let splits = plan.split_keys.map_or(String::new(), |keys| format!(", splits of {keys}"));
        format!("wgpu-attention, {:?} {queries} x {keys}{splits}", plan.method)
    }

    fn first(&mut self) -> Result<f64, String> {
        let begun = std::time::Instant::now();
        self.bound = Some(self.bind().map_err(|error| error.to_string())?);
        self.call()?;
        Ok(begun.elapsed().as_secs_f64())
    }

    fn call(&mut self) -> Result<f64, String> {
        Ok(seconds(|| {
            self.submit(|_| {});
            wait(&self.gpu);
        }))
    }

    fn output(&mut self) -> Option<Vec<f32>> {
        self.gpu.queue().write_buffer(&self.q, 0, bytemuck::cast_slice(&self.rows));
        self.submit(|encoder| {
            encoder.copy_buffer_to_buffer(&self.o, 0, &self.staging, 0, self.o.size());
        });
        self.staging.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("mapped"));
        wait(&self.gpu);
        let bytes = self.staging.get_mapped_range(..).expect("mapped");
        let output = bytemuck::pod_collect_to_vec(&bytes);
        drop(bytes);
        self.staging.unmap();
        Some(output)
    }
}

/// A cache of one sequence, full of keys and values.
fn cache(
    gpu: &Gpu,
    shape: CacheShape,
    [k, v]: [wgpu::Buffer; 2],
) -> Result<KvCache, wgpu_attention::Error> {
    let mut cache = KvCache::new(gpu.planner(), shape)?;
    let append = gpu.planner().plan_append(&Append::new(shape, shape.capacity))?;
    let new = Buffers::default().with(Operand::K, &k).with(Operand::V, &v);
    let append = append.bind(new.cache(&cache))?;
    cache.extend(gpu.queue(), &[shape.capacity])?;
    let mut encoder = gpu.device().create_command_encoder(&Default::default());
    append.encode_in(&mut encoder);
    gpu.queue().submit([encoder.finish()]);
    Ok(cache)
}

fn wait(gpu: &Gpu) {
    gpu.device().poll(wgpu::PollType::wait_indefinitely()).expect("a live device");
}

fn storage(gpu: &Gpu, elements: usize) -> wgpu::Buffer {
    use wgpu::BufferUsages as Usage;
    buffer(gpu, elements, Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC)
}

fn buffer(gpu: &Gpu, elements: usize, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    let size = 4 * elements as u64;
    gpu.device().create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size,
        usage,
        mapped_at_creation: false,
    })
}
