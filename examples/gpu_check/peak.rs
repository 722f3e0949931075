//! What the card does at most, by kernels that do one thing only.

use wgpu_attention::half::f16;

use super::answer::numbers;
use super::card::{Card, attempt};
use super::clock::Clock;
use super::line::{Outcome, Peaks, Times};
use super::shaders;

/// Seconds of a dispatch that is long enough to measure a rate.
const LONG: f64 = 0.02;
/// Larger than any cache on a card.
const READ_BYTES: u64 = 512 << 20;
const READ_BYTES_SMALL: u64 = 32 << 20;

/// The best rates, and in words why one is missing.
pub fn all(card: &Card, small: bool) -> (Peaks, Vec<String>) {
    let mut missing = Vec::new();
    let mut peak = |name: &str, measured: Result<f64, Outcome>| {
        let why = match &measured {
            Ok(_) => return measured.ok(),
            Err(Outcome::LeftOut(why) | Outcome::Failed(why)) => why.clone(),
            Err(other) => format!("{other:?}"),
        };
        missing.push(format!("no peak of {name}: {why}"));
        None
    };
    let has_f16 = card.device.features().contains(wgpu::Features::SHADER_F16);
    let no_f16 = || Err(Outcome::LeftOut("no SHADER_F16".into()));
    let peaks = Peaks {
        f32: peak("f32 multiply-adds", attempt(|| multiply_adds(card, false))),
        f16: peak("f16 multiply-adds", {
            if has_f16 { attempt(|| multiply_adds(card, true)) } else { no_f16() }
        }),
        matrix: peak("matrix products", attempt(|| matrix(card))),
        read: peak("reading", attempt(|| bandwidth(card, small))),
    };
    (peaks, missing)
}

/// A kernel with its buffers.
struct Kernel {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
}

impl Kernel {
    /// # Safety
    /// The text's loops end, and its indices are within these buffers for the grids that it gets.
    unsafe fn new(card: &Card, wgsl: String, buffers: &[&wgpu::Buffer]) -> Kernel {
        let source = wgpu::ShaderSource::Wgsl(wgsl.into());
        let descriptor = wgpu::ShaderModuleDescriptor { label: None, source };
        let checks = wgpu::ShaderRuntimeChecks::unchecked();
        // SAFETY: the caller's.
        let module = unsafe { card.device.create_shader_module_trusted(descriptor, checks) };
        let pipeline = card.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        let entries: Vec<_> = (0u32..)
            .zip(buffers)
            .map(|(binding, buffer)| {
                let resource = buffer.as_entire_binding();
                wgpu::BindGroupEntry { binding, resource }
            })
            .collect();
        let group = card.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        Kernel { pipeline, group }
    }

    fn time(&self, card: &Card, groups: u32) -> Result<Times, Outcome> {
        Clock::new(card).time(&|pass| {
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.group, &[]);
            pass.dispatch_workgroups(groups, 1, 1);
        })
    }
}

/// More workgroups until a dispatch is long, and the best of the last.
fn grown(
    card: &Card,
    mut times: impl FnMut(u32) -> Result<Times, Outcome>,
) -> Result<(u32, f64), Outcome> {
    let most = card.device.limits().max_compute_workgroups_per_dimension;
    let mut groups = 64.min(most);
    loop {
        let best = times(groups)?.best;
        if best >= LONG || groups == most {
            return Ok((groups, best));
        }
        let factor = (1.2 * LONG / best).clamp(2.0, 16.0);
        groups = ((f64::from(groups) * factor) as u32).min(most);
    }
}

fn multiply_adds(card: &Card, halves: bool) -> Result<f64, Outcome> {
    let (groups, best) = grown(card, |groups| {
        let sums = card.buffer(u64::from(groups) * 64 * if halves { 8 } else { 16 })?;
        // SAFETY: the loop is counted, and `sums` has an element for each invocation.
        let kernel = unsafe { Kernel::new(card, shaders::multiply_adds(halves), &[&sums]) };
        kernel.time(card, groups)
    })?;
    Ok(f64::from(groups) * shaders::MULTIPLY_ADDS / best)
}

fn bandwidth(card: &Card, small: bool) -> Result<f64, Outcome> {
    let limits = card.device.limits();
    let largest = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
    let mut bytes = largest.min(if small { READ_BYTES_SMALL } else { READ_BYTES });
    let data = loop {
        match card.buffer(bytes) {
            Err(Outcome::LeftOut(_)) if bytes > 16 << 20 => bytes /= 2,
            other => break other?,
        }
    };
    let groups = (bytes / shaders::BANDWIDTH) as u32;
    let sums = card.buffer(u64::from(groups) * 256 * 4)?;
    // SAFETY: the loop is counted, and there are BANDWIDTH bytes for each workgroup.
    let kernel = unsafe { Kernel::new(card, shaders::bandwidth(), &[&data, &sums]) };
    let best = kernel.time(card, groups)?.best;
    Ok((u64::from(groups) * shaders::BANDWIDTH) as f64 / best)
}

fn matrix(card: &Card) -> Result<f64, Outcome> {
    use wgpu::{CooperativeScalarType as Type, Features as F};
    let none = |what: &str| Outcome::LeftOut(what.into());
    let features = card.device.features();
    if !features.contains(F::EXPERIMENTAL_COOPERATIVE_MATRIX | F::SHADER_F16 | F::SUBGROUP) {
        return Err(none("the adapter has no cooperative matrices, or no f16 or subgroups beside"));
    }
    let properties = &card.matrices;
    let fits = |side: &u32| {
        properties.iter().any(|p| {
            [p.m_size, p.n_size, p.k_size] == [*side; 3]
                && (p.ab_type, p.cr_type) == (Type::F16, Type::F32)
        })
    };
    let side = [16, 8].into_iter().find(fits);
    let side = side.ok_or_else(|| none("no matrices of f16 with sums of f32, 8 or 16 square"))?;

    let factors = card.buffer(u64::from(side * side) * 2)?;
    let halves: Vec<f16> =
        numbers(0, 0, side * side).into_iter().map(|x| f16::from_f32(x / 16.0)).collect();
    card.queue.write_buffer(&factors, 0, bytemuck::cast_slice(&halves));
    let [sums, subgroups] = [card.buffer(u64::from(4 * side * side) * 4)?, card.buffer(4)?];
    let buffers = [&factors, &sums, &subgroups];
    // SAFETY: the loop is counted; all indices are constants within the buffers.
    let kernel = unsafe { Kernel::new(card, shaders::matrix(side), &buffers) };
    let (groups, best) = grown(card, |groups| kernel.time(card, groups))?;
    let count = card.read(&subgroups, [(0, 4)].into_iter())?;
    let count: u32 = bytemuck::pod_read_unaligned(&count);
    Ok(f64::from(groups) * f64::from(count) * shaders::matrix_operations(side) / best)
}
