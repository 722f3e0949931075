//! A full cache, and calls over it.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};
use wgpu_attention::{
    Append, Bound, Buffers, CacheShape, Element, Gpu, Inputs, KvCache, Operand, Problem, cpu,
};

/// A cache and the rows it holds.
pub struct Cached<'a> {
    gpu: &'a Gpu,
    cache: KvCache,
    k: Vec<f32>,
    v: Vec<f32>,
}

/// Some queries against it.
pub struct Call<'a> {
    cached: &'a Cached<'a>,
    problem: Problem,
    bound: Bound,
    q: Vec<f32>,
    o: wgpu::Buffer,
}

fn normal(n: u64, seed: u64) -> Vec<f32> {
    StandardNormal.sample_iter(StdRng::seed_from_u64(seed)).take(n as usize).collect()
}

fn buffer(gpu: &Gpu, bytes: u64) -> wgpu::Buffer {
    use wgpu::BufferUsages as Usage;
    gpu.device().create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes.max(4),
        usage: Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC,
        mapped_at_creation: false,
    })
}

impl<'a> Cached<'a> {
    pub fn new(gpu: &'a Gpu, shape: CacheShape) -> Cached<'a> {
        let mut cache = KvCache::new(gpu.planner(), shape).expect("a cache");
        let call = Append::new(shape, shape.capacity);
        let [k, v] =
            [(Operand::K, 1), (Operand::V, 2)].map(|(o, seed)| normal(call.elements(o), seed));
        let new = [&k, &v].map(|rows| {
            let new = buffer(gpu, 4 * rows.len() as u64);
            gpu.queue().write_buffer(&new, 0, bytemuck::cast_slice(rows));
            new
        });
        let given = Buffers::default().with(Operand::K, &new[0]).with(Operand::V, &new[1]);
        let append = gpu.planner().plan_append(&call).expect("a plan");
        let append = append.bind(given.cache(&cache)).expect("bound");
        cache.extend(gpu.queue(), &[shape.capacity]).expect("room");
        submit(gpu, |encoder| append.encode_in(encoder));
        Cached { gpu, cache, k, v }
    }

    /// So many query rows of so many heads, every row at the end of the cache.
    pub fn call(&'a self, rows: u32, heads: u32) -> Call<'a> {
        let problem = self.cache.shape().problem(heads, rows).band(Default::default());
        let plan = self.gpu.planner().plan(&problem).expect("a plan");
        let q = normal(problem.elements(Operand::Q), 3);
        let [on_gpu, o] = [Operand::Q, Operand::O].map(|x| buffer(self.gpu, problem.bytes(x)));
        self.gpu.queue().write_buffer(&on_gpu, 0, bytemuck::cast_slice(&q));
        let scratch = buffer(self.gpu, plan.scratch_bytes());
        let buffers = Buffers::cached(&on_gpu, &self.cache, &o).with(Operand::Scratch, &scratch);
        let bound = plan.bind(buffers).expect("bound");
        Call { cached: self, problem, bound, q, o }
    }
}

impl Call<'_> {
    pub fn run(&self) {
        submit(self.cached.gpu, |encoder| self.bound.encode_in(encoder));
    }

    /// The first and the last row of the first and the last head, against f64.
    pub fn check(&self) {
        self.run();
        let gpu = self.cached.gpu;
        let staging = gpu.device().create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: self.o.size(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        staging_copy(gpu, &self.o, &staging);
        let bytes = staging.get_mapped_range(..).expect("mapped");
        let got: Vec<f32> = bytemuck::pod_collect_to_vec(&bytes);
        let (shape, cached) = (self.problem.shape(), self.cached);
        let plain = Problem::new(shape);
        let inputs = Inputs::new(&self.q, &cached.k, &cached.v);
        // What the storage type rounds away shows in the output.
        let most = match cached.cache.shape().element {
            Element::F32 => 1e-5,
            Element::F16 => 1e-3,
            _ => 2e-2,
        };
        for head in [0, shape.q_heads - 1] {
            for row in [0, shape.q_len - 1] {
                let want = cpu::row(&plain, inputs, [0, head, row]).expect("a row").o;
                let first = ((head * shape.q_len + row) * shape.value_dim) as usize;
                for (got, want) in got[first..].iter().zip(&want) {
                    let error = (f64::from(*got) - want).abs();
                    assert!(error <= most, "head {head}, row {row}: {got} for {want}");
                }
            }
        }
    }
}

fn submit(gpu: &Gpu, record: impl FnOnce(&mut wgpu::CommandEncoder)) {
    let mut encoder = gpu.device().create_command_encoder(&Default::default());
    record(&mut encoder);
    gpu.queue().submit([encoder.finish()]);
    gpu.device().poll(wgpu::PollType::wait_indefinitely()).expect("a live device");
}

fn staging_copy(gpu: &Gpu, from: &wgpu::Buffer, to: &wgpu::Buffer) {
    submit(gpu, |encoder| encoder.copy_buffer_to_buffer(from, 0, to, 0, from.size()));
    to.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("mapped"));
    gpu.device().poll(wgpu::PollType::wait_indefinitely()).expect("a live device");
}
