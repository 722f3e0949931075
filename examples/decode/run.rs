//! A prompt, then token after token, timed and compared with the definition.

use std::time::Instant;

use indicatif::ProgressBar;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};
use wgpu_attention::{CacheShape, Element, Error, Gpu, Inputs, Pairing, Rotary, cpu};

use crate::layer::{Layer, buffer};
use crate::{Args, Stored};

/// Base of the rotary angles.
const BASE: f64 = 10_000.0;

pub struct Run {
    /// Of the prompt, the second time.
    pub prefill: f64,
    /// Of each step.
    pub milliseconds: Vec<f64>,
    /// Of all caches' rows.
    pub bytes: u64,
    pub share_of_f32: f64,
    /// Relative RMS error of the last step's outputs.
    pub error: f64,
    /// The largest absolute error of any step, where every step was checked.
    pub worst: Option<f32>,
}

impl Run {
    pub fn new(gpu: &Gpu, args: &Args, stored: Stored) -> Result<Run, Error> {
        let capacity = args.prefill + args.steps;
        let shape = CacheShape::new(1, args.kv_heads, capacity, args.dim);
        let shape =
            shape.element(stored.element()).paged(args.page, capacity.div_ceil(args.page.max(1)));
        let rotary = Rotary::new(args.dim / 2, capacity, Pairing::Halves);
        let table = rotary.table(BASE);
        let on_gpu = buffer(gpu, 4 * table.len() as u64);
        gpu.queue().write_buffer(&on_gpu, 0, bytemuck::cast_slice(&table));
        let layer = |_| Layer::new(gpu, shape, [args.heads, args.prefill], rotary, &on_gpu);
        let mut layers = (0..args.layers).map(layer).collect::<Result<Vec<_>, _>>()?;

        // The definition has the same keys and values, as f32.
        let plain = shape.element(Element::F32);
        let twin = |_| cpu::KvCache::new(plain);
        let mut twins = (0..args.layers).map(twin).collect::<Result<Vec<_>, _>>()?;
        let mut random = StdRng::seed_from_u64(7);
        let mut normal = move |n: usize| -> Vec<f32> {
            StandardNormal.sample_iter(&mut random).take(n).collect()
        };

        let bar = ProgressBar::new(args.steps.into());
        let (mut prefill, mut milliseconds) = (0.0, Vec::new());
        let (mut off, mut all, mut worst) = (0.0, 0.0, 0.0f32);
        // Token 0 stands for the whole prompt.
        for token in 0..=args.steps {
            let (prompt, count) = (token == 0, if token == 0 { args.prefill } else { 1 });
            let mut queries = Vec::new();
            for (layer, twin) in layers.iter().zip(&mut twins) {
                let tokens = if prompt { &layer.prompt } else { &layer.step };
                let rows = tokens.sizes().map(&mut normal);
                tokens.fill(gpu, &rows);
                let [q, k, v] = &rows;
                let call =
                    wgpu_attention::Append::new(plain, count).rotary(rotary).queries(args.heads);
                let inputs = cpu::AppendInputs { k, v, q: Some(q), rotary: Some(&table) };
                queries.push(twin.append(&call, &[count], inputs)?.unwrap_or_default());
            }
            let time = step(gpu, &mut layers, prompt, count)?;
            if prompt {
                // Once more: the first time, drivers compile.
                for layer in &mut layers {
                    layer.cache.set_len(gpu.queue(), 0, 0)?;
                }
                prefill = step(gpu, &mut layers, prompt, count)?;
                continue;
            }
            milliseconds.push(time);
            bar.inc(1);
            if args.check || token == args.steps {
                (off, all) = (0.0, 0.0);
                for ((layer, twin), q) in layers.iter().zip(&twins).zip(&queries) {
                    let got = read(gpu, &layer.step.o)?;
                    let problem = twin.problem(&plain.problem(args.heads, 1));
                    let inputs = Inputs::new(q, twin.k(), twin.v()).kv_lens(twin.lens());
                    let want = cpu::attention(&problem, inputs)?.o;
                    for (got, want) in got.iter().zip(&want) {
                        off += f64::from(got - want).powi(2);
                        all += f64::from(*want).powi(2);
                        worst = worst.max((got - want).abs());
                    }
                }
            }
        }
        bar.finish_and_clear();
        Ok(Run {
            prefill,
            milliseconds,
            bytes: u64::from(args.layers) * shape.bytes(),
            share_of_f32: shape.bytes() as f64 / plain.bytes() as f64,
            error: (off / all).sqrt(),
            worst: args.check.then_some(worst),
        })
    }
}

/// Milliseconds from making room to the end of the GPU's work.
fn step(gpu: &Gpu, layers: &mut [Layer], prompt: bool, count: u32) -> Result<f64, Error> {
    // What was written before is not part of it.
    wait(gpu)?;
    let begun = Instant::now();
    let mut encoder = gpu.device().create_command_encoder(&Default::default());
    let mut pass = encoder.begin_compute_pass(&Default::default());
    for layer in layers {
        layer.cache.extend(gpu.queue(), &[count])?;
        let tokens = if prompt { &layer.prompt } else { &layer.step };
        tokens.encode(&mut pass);
    }
    drop(pass);
    gpu.queue().submit([encoder.finish()]);
    wait(gpu)?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

fn wait(gpu: &Gpu) -> Result<(), Error> {
    let polled = gpu.device().poll(wgpu::PollType::wait_indefinitely());
    polled.map(|_| ()).map_err(|error| Error::Device(error.to_string()))
}

fn read(gpu: &Gpu, from: &wgpu::Buffer) -> Result<Vec<f32>, Error> {
    let staging = gpu.device().create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: from.size(),
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = gpu.device().create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(from, 0, &staging, 0, from.size());
    gpu.queue().submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |_| {});
    wait(gpu)?;
    let bytes = staging.get_mapped_range(..).map_err(|error| Error::Device(error.to_string()));
    bytes.map(|bytes| bytemuck::pod_collect_to_vec(&bytes))
}
