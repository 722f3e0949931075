//! A prompt, then token after token, timed and compared with the definition.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};
use wgpu_attention::{Element, Error, Gpu};

use crate::args::{Sizes, name};
use crate::device::{read, submit, upload};
use crate::layer::Layer;
use crate::twin::{Distance, Twin};

/// Base of the rotary angles.
const BASE: f64 = 10_000.0;

pub struct Run {
    pub element: Element,
    /// Milliseconds of the prompt.
    pub prefill: f64,
    /// Of each step.
    pub milliseconds: Vec<f64>,
    /// Of the last step's outputs, all layers.
    pub last: Distance,
    /// The largest error of all that was compared.
    pub most: f64,
}

impl Run {
    /// `check`: whether the prompt and every step are compared, not only the last one.
    pub fn new(gpu: &Gpu, sizes: Sizes, element: Element, check: bool) -> Result<Run, Error> {
        let shape = sizes.cache(element);
        shape.validate()?;
        let table = sizes.rotary().table(BASE);
        let angles = upload(gpu, &table);
        let tokens = [sizes.heads, sizes.prefill];
        let layer = |_| Layer::new(gpu, shape, tokens, sizes.rotary(), &angles);
        let mut layers = (0..sizes.layers).map(layer).collect::<Result<Vec<_>, _>>()?;
        let twin = |_| Twin::new(sizes);
        let mut twins = (0..sizes.layers).map(twin).collect::<Result<Vec<_>, _>>()?;
        // The same for every type.
        let mut random = StdRng::seed_from_u64(7);
        let mut normal = move |n: usize| -> Vec<f32> {
            StandardNormal.sample_iter(&mut random).take(n).collect()
        };

        let bar = progress_bar(sizes.steps, element);
        let (mut prefill, mut milliseconds) = (0.0, Vec::new());
        let (mut last, mut all) = (Distance::default(), Distance::default());
        // Step 0 is the whole prompt.
        for step in 0..=sizes.steps {
            let prompt = step == 0;
            let count = if prompt { sizes.prefill } else { 1 };
            let mut rows = Vec::new();
            for (layer, twin) in layers.iter().zip(&mut twins) {
                let new = layer.tokens(prompt).sizes().map(&mut normal);
                twin.append(count, &new, &table)?;
                rows.push(new);
            }
            let mut time = advance(gpu, &mut layers, &rows, count, prompt)?;
            if step < 2 {
                // Once more: the first time, drivers compile.
                for layer in &mut layers {
                    let before = layer.cache.len(0)? - count;
                    layer.cache.set_len(gpu.queue(), 0, before)?;
                }
                time = advance(gpu, &mut layers, &rows, count, prompt)?;
            }
            if prompt {
                prefill = time;
            } else {
                milliseconds.push(time);
                bar.inc(1);
            }
            if check || step == sizes.steps {
                last = Distance::default();
                for (layer, twin) in layers.iter().zip(&twins) {
                    last = last.with(twin.distance(&read(gpu, &layer.tokens(prompt).o)?)?);
                }
                all = all.with(last);
            }
        }
        bar.finish_and_clear();
        Ok(Run { element, prefill, milliseconds, last, most: all.most })
    }
}

/// Milliseconds from writing rows to the end of the GPU's work.
fn advance(
    gpu: &Gpu,
    layers: &mut [Layer],
    rows: &[[Vec<f32>; 3]],
    count: u32,
    prompt: bool,
) -> Result<f64, Error> {
    let begun = Instant::now();
    let mut encoder = gpu.device().create_command_encoder(&Default::default());
    let mut pass = encoder.begin_compute_pass(&Default::default());
    for (layer, rows) in layers.iter_mut().zip(rows) {
        layer.tokens(prompt).fill(gpu, rows);
        layer.cache.extend(gpu.queue(), &[count])?;
        layer.tokens(prompt).encode(&mut pass);
    }
    drop(pass);
    submit(gpu, encoder)?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

/// Progress on stderr, where that is a terminal.
fn progress_bar(steps: u32, element: Element) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {elapsed}  {msg}");
    let bar = ProgressBar::new(steps.into()).with_message(name(element));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
