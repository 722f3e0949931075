//! One layer: its cache, and what is bound to it once.

use wgpu_attention::{
    Append, AppendBound, Bound, Buffers, CacheShape, Error, Gpu, KvCache, Operand, Rotary,
};

use crate::device::buffer;

/// Tokens that come at a time, with buffers of their own.
pub struct Tokens {
    /// Q, K and V of so many tokens, f32.
    new: [wgpu::Buffer; 3],
    pub o: wgpu::Buffer,
    append: AppendBound,
    attend: Bound,
    call: Append,
}

/// A prompt at once, then one token at a time.
pub struct Layer {
    pub cache: KvCache,
    prompt: Tokens,
    step: Tokens,
}

impl Tokens {
    fn new(
        gpu: &Gpu,
        cache: &KvCache,
        [heads, tokens]: [u32; 2],
        rotary: Rotary,
        table: &wgpu::Buffer,
    ) -> Result<Tokens, Error> {
        let call = Append::new(cache.shape(), tokens).rotary(rotary).queries(heads);
        let new = [Operand::Q, Operand::K, Operand::V].map(|o| buffer(gpu, call.bytes(o)));
        let rotated = buffer(gpu, call.bytes(Operand::Rotated));
        let append = gpu.planner().plan_append(&call)?.bind(
            Buffers::default()
                .with(Operand::Q, &new[0])
                .with(Operand::K, &new[1])
                .with(Operand::V, &new[2])
                .with(Operand::Rotated, &rotated)
                .with(Operand::Rotary, table)
                .cache(cache),
        )?;
        // Causal, the last new token at the end of the cache.
        let plan = gpu.planner().plan(&cache.shape().problem(heads, tokens))?;
        let o = buffer(gpu, plan.problem().bytes(Operand::O));
        let scratch = buffer(gpu, plan.scratch_bytes());
        let buffers = Buffers::cached(&rotated, cache, &o).with(Operand::Scratch, &scratch);
        Ok(Tokens { attend: plan.bind(buffers)?, new, o, append, call })
    }

    /// Rows for the next submit.
    pub fn fill(&self, gpu: &Gpu, rows: &[Vec<f32>; 3]) {
        for (buffer, row) in self.new.iter().zip(rows) {
            gpu.queue().write_buffer(buffer, 0, bytemuck::cast_slice(row));
        }
    }

    /// Numbers of Q, K and V.
    pub fn sizes(&self) -> [usize; 3] {
        [Operand::Q, Operand::K, Operand::V].map(|o| self.call.elements(o) as usize)
    }

    /// One append, then one attention over all that the cache holds.
    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
        self.append.encode(pass);
        self.attend.encode(pass);
    }
}

impl Layer {
    pub fn new(
        gpu: &Gpu,
        shape: CacheShape,
        [heads, prompt]: [u32; 2],
        rotary: Rotary,
        table: &wgpu::Buffer,
    ) -> Result<Layer, Error> {
        let cache = KvCache::new(gpu.planner(), shape)?;
        let tokens = |n| Tokens::new(gpu, &cache, [heads, n], rotary, table);
        let (prompt, step) = (tokens(prompt)?, tokens(1)?);
        Ok(Layer { cache, prompt, step })
    }

    /// The prompt, or the newest token.
    pub fn tokens(&self, prompt: bool) -> &Tokens {
        if prompt { &self.prompt } else { &self.step }
    }
}
