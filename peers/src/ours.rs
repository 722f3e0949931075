//! This library: K and V in its cache.

use wgpu_attention::{Append, Bound, Buffers, CacheShape, Gpu, KvCache, Method, Operand, wgpu};

use crate::{Case, Peer};

pub struct Ours<'a> {
    gpu: &'a Gpu,
    method: Method,
    bound: Bound,
    q: wgpu::Buffer,
    o: wgpu::Buffer,
    staging: wgpu::Buffer,
    rows: Vec<f32>,
    _cache: KvCache,
}

impl<'a> Ours<'a> {
    pub fn new(gpu: &'a Gpu, case: &Case) -> Ours<'a> {
        use wgpu::BufferUsages as Usage;
        let device = gpu.device();
        let buffer = |size: usize, usage: Usage| {
            let (label, size) = (None, 4 * size as u64);
            let descriptor =
                wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false };
            device.create_buffer(&descriptor)
        };
        let storage = |size| buffer(size, Usage::STORAGE | Usage::COPY_DST | Usage::COPY_SRC);
        let shape = CacheShape::new(1, case.heads, case.keys, case.dim);
        let mut cache = KvCache::new(gpu.planner(), shape).expect("a cache");
        let new = [&case.k, &case.v].map(|rows| {
            let new = storage(rows.len());
            gpu.queue().write_buffer(&new, 0, bytemuck::cast_slice(rows));
            new
        });
        let append = gpu.planner().plan_append(&Append::new(shape, case.keys)).expect("a plan");
        let given = Buffers::default().with(Operand::K, &new[0]).with(Operand::V, &new[1]);
        let append = append.bind(given.cache(&cache)).expect("bound");
        cache.extend(gpu.queue(), &[case.keys]).expect("room");
        let mut encoder = device.create_command_encoder(&Default::default());
        append.encode_in(&mut encoder);
        gpu.queue().submit([encoder.finish()]);

        // Every row sees every key, as with the others.
        let mut problem = shape.problem(case.heads, case.rows);
        problem = problem.band(Default::default());
        let plan = gpu.planner().plan(&problem).expect("a plan");
        let (q, o) = (storage(case.q.len()), storage(case.q.len()));
        let scratch = storage(plan.scratch_bytes() as usize / 4 + 1);
        let buffers = Buffers::cached(&q, &cache, &o).with(Operand::Scratch, &scratch);
        let bound = plan.bind(buffers).expect("bound");
        let staging = buffer(case.q.len(), Usage::MAP_READ | Usage::COPY_DST);
        let (method, rows) = (plan.method(), case.q.clone());
        Ours { gpu, method, bound, q, o, staging, rows, _cache: cache }
    }
}

impl Peer for Ours<'_> {
    fn name(&self) -> String {
        format!("wgpu-attention, {:?}", self.method)
    }

    fn run(&mut self) -> Vec<f32> {
        self.gpu.queue().write_buffer(&self.q, 0, bytemuck::cast_slice(&self.rows));
        let mut encoder = self.gpu.device().create_command_encoder(&Default::default());
        self.bound.encode_in(&mut encoder);
        encoder.copy_buffer_to_buffer(&self.o, 0, &self.staging, 0, self.o.size());
        self.gpu.queue().submit([encoder.finish()]);
        self.staging.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("mapped"));
        self.gpu.device().poll(wgpu::PollType::wait_indefinitely()).expect("a live device");
        let bytes = self.staging.get_mapped_range(..).expect("mapped");
        let output = bytemuck::pod_collect_to_vec(&bytes);
        drop(bytes);
        self.staging.unmap();
        output
    }
}
