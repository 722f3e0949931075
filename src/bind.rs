//! A plan and buffers, checked and bound: what is recorded.

use crate::kernel::Slot;
use crate::plan::Inner;
use crate::scope::{Later, Now, Scope};
use crate::uniform::{LengthsUniform, ProblemUniform};
use crate::{Error, Operand, Plan};

/// The caller's buffers, each with usage [`wgpu::BufferUsages::STORAGE`].
///
/// Operands lie in their buffers as the problem's layouts say, offset included. Q, K, V and bias
/// may share a buffer; whatever is written needs one of its own, or [`Buffers::arena`].
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Buffers<'a> {
    given: [Option<&'a wgpu::Buffer>; 10],
}

impl<'a> Buffers<'a> {
    /// Q, K, V and O.
    pub fn new(
        q: &'a wgpu::Buffer,
        k: &'a wgpu::Buffer,
        v: &'a wgpu::Buffer,
        o: &'a wgpu::Buffer,
    ) -> Buffers<'a> {
        let all = [(Operand::Q, q), (Operand::K, k), (Operand::V, v), (Operand::O, o)];
        all.into_iter()
            .fold(Buffers::default(), |buffers, (operand, buffer)| buffers.with(operand, buffer))
    }

    /// Everything but scratch in one buffer, for [`Problem::arena`](crate::Problem::arena).
    pub fn arena(arena: &'a wgpu::Buffer) -> Buffers<'a> {
        Buffers::default().with(Operand::Arena, arena)
    }

    /// One more operand, or another buffer for one.
    pub fn with(mut self, operand: Operand, buffer: &'a wgpu::Buffer) -> Buffers<'a> {
        self.given[operand as usize] = Some(buffer);
        self
    }

    fn get(&self, operand: Operand) -> Option<&'a wgpu::Buffer> {
        self.given[operand as usize]
    }
}

const OPERANDS: [Operand; 10] = [
    Operand::Q,
    Operand::K,
    Operand::V,
    Operand::O,
    Operand::Bias,
    Operand::Lse,
    Operand::Scores,
    Operand::Weights,
    Operand::Scratch,
    Operand::Arena,
];

/// A plan bound to buffers, ready to be recorded any number of times, from any thread.
#[derive(Clone, Debug)]
pub struct Bound {
    plan: Plan,
    dispatches: Vec<(wgpu::ComputePipeline, wgpu::BindGroup, [u32; 3])>,
    /// Lengths, then one problem a step.
    uniforms: wgpu::Buffer,
}

impl Plan {
    /// Checks the buffers and binds them.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Unexpected`], [`Error::Length`], [`Error::Usage`],
    /// [`Error::Overlap`]; [`Error::Device`] for what only wgpu knows, such as a buffer of
    /// another device. In browsers wgpu reports that later: use [`Plan::bind_async`]. A buffer of
    /// another [`wgpu::Instance`] is wgpu's own panic.
    pub fn bind(&self, buffers: Buffers<'_>) -> Result<Bound, Error> {
        bind(self, &buffers, &mut Now)
    }

    /// As [`Plan::bind`], and waits for what wgpu has to say.
    ///
    /// # Errors
    /// As [`Plan::bind`].
    pub async fn bind_async(&self, buffers: Buffers<'_>) -> Result<Bound, Error> {
        let mut later = Later::default();
        let bound = bind(self, &buffers, &mut later)?;
        later.outcome().await.map(|()| bound)
    }
}

impl Bound {
    /// Records the dispatches into a pass. Sets pipeline and bind group 0, and leaves them set.
    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
        for (pipeline, bind_group, [x, y, z]) in &self.dispatches {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, bind_group, &[]);
            pass.dispatch_workgroups(*x, *y, *z);
        }
    }

    /// Records one labelled pass into an encoder.
    pub fn encode_in(&self, encoder: &mut wgpu::CommandEncoder) {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: Some("wgpu-attention"),
            timestamp_writes: None,
        });
        self.encode(&mut pass);
    }

    /// From the next submit on, only the first `q_len` queries and `kv_len` keys of every
    /// sequence exist; the shape's are capacities. Rows past `q_len` are written: O = 0,
    /// LSE = -inf. A bottom-right alignment follows the lengths.
    ///
    /// # Errors
    /// [`Error::Size`] past a capacity; [`Error::Align`] for a band without alignment if the
    /// lengths differ.
    pub fn set_lengths(&self, queue: &wgpu::Queue, q_len: u32, kv_len: u32) -> Result<(), Error> {
        let problem = self.plan.problem();
        let shape = problem.shape();
        for (what, got, most) in [("q_len", q_len, shape.q_len), ("kv_len", kv_len, shape.kv_len)] {
            if got > most {
                return Err(Error::Size {
                    what,
                    need: "at most its capacity in the shape",
                    got: got.into(),
                });
            }
        }
        let lengths = LengthsUniform::new(problem, q_len, kv_len)?;
        queue.write_buffer(&self.uniforms, 0, bytemuck::bytes_of(&lengths));
        Ok(())
    }

    /// The plan this was bound from.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// A buffer's bound bytes.
#[derive(Clone, Copy)]
struct Range<'a> {
    buffer: &'a wgpu::Buffer,
    offset: u64,
    size: u64,
}

fn bind(plan: &Plan, buffers: &Buffers<'_>, scope: &mut impl Scope) -> Result<Bound, Error> {
    let inner = &*plan.inner;
    check(plan, buffers)?;
    let device = inner.attention.device();
    let (uniforms, stride) = scope.run(device, || uniforms(inner))??;
    // Stands for operands without elements, which cannot be bound themselves.
    let nothing = &uniforms.1;
    let range = |slot: Slot, step: usize| match slot {
        Slot::Lengths => Range { buffer: &uniforms.0, offset: 0, size: 16 },
        Slot::Problem => {
            let size = size_of::<ProblemUniform>() as u64;
            Range { buffer: &uniforms.0, offset: (1 + step as u64) * stride, size }
        }
        _ => {
            storage(inner, buffers, slot).unwrap_or(Range { buffer: nothing, offset: 0, size: 16 })
        }
    };
    let dispatches = scope.run(device, || {
        let bind_group = |(at, step): (usize, &crate::plan::Step)| {
            let pipeline = &step.pipeline;
            let entries: Vec<_> = pipeline
                .module
                .slots
                .iter()
                .map(|&slot| {
                    let Range { buffer, offset, size } = range(slot, at);
                    let size = wgpu::BufferSize::new(size);
                    let bytes = wgpu::BufferBinding { buffer, offset, size };
                    let resource = wgpu::BindingResource::Buffer(bytes);
                    wgpu::BindGroupEntry { binding: slot as u32, resource }
                })
                .collect();
            let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(&format!("wgpu-attention {}", pipeline.module.kernel.name())),
                layout: &pipeline.layout,
                entries: &entries,
            });
            (pipeline.pipeline.clone(), bind_group, step.grid)
        };
        inner.steps.iter().enumerate().map(bind_group).collect()
    })?;
    Ok(Bound { plan: plan.clone(), dispatches, uniforms: uniforms.0.clone() })
}

fn check(plan: &Plan, buffers: &Buffers<'_>) -> Result<(), Error> {
    let problem = plan.problem();
    let is_needed = |operand| match operand {
        Operand::Arena => problem.is_arena(),
        Operand::Scratch => plan.scratch_bytes() > 0,
        _ => !problem.is_arena() && problem.operands().contains(&operand),
    };
    for operand in OPERANDS {
        let (needed, given) = (is_needed(operand), buffers.get(operand));
        let Some(buffer) = given else {
            if needed {
                return Err(Error::Missing { operand });
            }
            continue;
        };
        let scratch = operand == Operand::Scratch;
        if !needed {
            if scratch {
                continue; // A caller may give one scratch buffer to every plan.
            }
            return Err(Error::Unexpected { operand });
        }
        let (need, got) = match scratch {
            true => (plan.scratch_bytes(), buffer.size()),
            false => (problem.elements(operand), buffer.size() / 4),
        };
        if got < need {
            return Err(Error::Length { operand, need, got });
        }
        let usage = wgpu::BufferUsages::STORAGE;
        if need > 0 && !buffer.usage().contains(usage) {
            return Err(Error::Usage { operand, need: usage, got: buffer.usage() });
        }
        if need > 0 && (operand.is_written() || scratch) {
            let shared = |&other: &Operand| {
                let counts =
                    is_needed(other) && (other == Operand::Scratch || problem.elements(other) > 0);
                other != operand && counts && buffers.get(other) == Some(buffer)
            };
            if let Some(other) = OPERANDS.into_iter().find(shared) {
                let need = "a buffer of its own, or Problem::arena for all operands but scratch";
                return Err(Error::Overlap { operand, other, need });
            }
        }
    }
    Ok(())
}

/// The bytes that a storage slot binds; `None` if its operand has no elements.
fn storage<'a>(inner: &Inner, buffers: &Buffers<'a>, slot: Slot) -> Option<Range<'a>> {
    let operand = match slot {
        Slot::Scores => inner.variant.scores_in,
        Slot::Weights => inner.variant.weights_in,
        _ => *OPERANDS.iter().find(|&&operand| Slot::of(operand) == slot)?,
    };
    let buffer = buffers.get(operand)?;
    if operand == Operand::Scratch {
        let [matrix, partial] = inner.scratch;
        let range = match slot {
            Slot::Scratch => Range { buffer, offset: matrix.next_multiple_of(256), size: partial },
            _ => Range { buffer, offset: 0, size: matrix },
        };
        return Some(range).filter(|range| range.size > 0);
    }
    let end = 4 * inner.problem.elements(operand);
    let offset = 4 * u64::from(first_bound(inner, operand));
    (end > offset).then_some(Range { buffer, offset, size: end - offset })
}

/// The element at which an operand's binding begins: its first one, rounded down to what a
/// binding may begin at. So operands far into a large buffer can be bound.
fn first_bound(inner: &Inner, operand: Operand) -> u32 {
    let problem = &inner.problem;
    let first = if problem.is_arena() && operand != Operand::Scratch {
        let spans = problem.operands().into_iter().map(|o| problem.span(o));
        spans.filter(|span| !span.is_empty()).map(|span| span.offset).min().unwrap_or(0)
    } else {
        problem.span(operand).offset
    };
    let alignment = inner.attention.limits().min_storage_buffer_offset_alignment.max(32) / 4;
    first / alignment * alignment
}

fn stride(inner: &Inner) -> u64 {
    let alignment = u64::from(inner.attention.limits().min_uniform_buffer_offset_alignment.max(16));
    (size_of::<ProblemUniform>() as u64).next_multiple_of(alignment)
}

pub(crate) fn owned_bytes(inner: &Inner) -> u64 {
    (1 + inner.steps.len() as u64) * stride(inner) + 16
}

type Uniforms = ((wgpu::Buffer, wgpu::Buffer), u64);

/// The uniform buffer of all steps, and a small buffer that stands for empty operands.
fn uniforms(inner: &Inner) -> Result<Uniforms, Error> {
    let stride = stride(inner);
    let shape = inner.problem.shape;
    let mut bytes = vec![0u8; (1 + inner.steps.len()) * stride as usize];
    let lengths = LengthsUniform::new(&inner.problem, shape.q_len, shape.kv_len)?;
    bytes[..16].copy_from_slice(bytemuck::bytes_of(&lengths));
    for (at, step) in inner.steps.iter().enumerate() {
        let first = (1 + at) * stride as usize;
        let uniform = ProblemUniform::new(inner, step, |operand| first_bound(inner, operand))?;
        bytes[first..first + size_of::<ProblemUniform>()]
            .copy_from_slice(bytemuck::bytes_of(&uniform));
    }
    let device = inner.attention.device();
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("wgpu-attention uniforms"),
        size: bytes.len() as u64,
        usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: true,
    });
    let refused = |error: wgpu::MapRangeError| Error::Device(error.to_string());
    buffer.get_mapped_range_mut(..).map_err(refused)?.copy_from_slice(&bytes);
    buffer.unmap();
    let nothing = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("wgpu-attention nothing"),
        size: 16,
        usage: wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    });
    Ok(((buffer, nothing), stride))
}
