//! A plan and buffers, checked and bound: what is recorded.

use crate::buffers::{Bindable, Need, Range, Recording, begin_pass, uniform_buffer};
use crate::kernel::Slot;
use crate::plan::{Inner, SCRATCH_ALIGNMENT, Step};
use crate::scope::{Later, Now, Scope};
use crate::uniform::{LengthsUniform, ProblemUniform};
use crate::{Buffers, Error, Operand, Plan, texture};

/// Bytes that stand for an operand without elements.
const NOTHING: u64 = 16;

/// A plan bound to buffers, ready to be recorded any number of times, from any thread.
#[derive(Clone, Debug)]
pub struct Bound {
    plan: Plan,
    recording: Recording,
    /// Lengths, then one problem a step.
    uniforms: wgpu::Buffer,
}

impl Plan {
    /// Checks the buffers and binds them.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Unexpected`], [`Error::Length`], [`Error::Usage`],
    /// [`Error::Overlap`]; [`Error::Device`] for what only wgpu knows, such as a buffer of
    /// another device, or a device that is lost. In browsers wgpu reports that later: use
    /// [`Plan::bind_async`]. A buffer of another [`wgpu::Instance`] is wgpu's own panic.
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
        self.recording.encode(pass);
    }

    /// Records one labelled pass into an encoder.
    pub fn encode_in(&self, encoder: &mut wgpu::CommandEncoder) {
        self.encode(&mut begin_pass(encoder));
    }

    /// From the next submit on, only the first `q_len` queries and `kv_len` keys of every
    /// sequence exist, if it is not shorter by itself; the shape's are capacities. Rows past `q_len` are written: O = 0,
    /// LSE = -inf. A bottom-right alignment follows the lengths.
    ///
    /// # Errors
    /// [`Error::Size`] past a capacity; [`Error::Align`] for a band without alignment if the
    /// lengths differ; [`Error::Unexpected`] for packed sequences. The queue of another device is a mistake that only that device
    /// reports; of another [`wgpu::Instance`], wgpu's own panic.
    pub fn set_lengths(&self, queue: &wgpu::Queue, q_len: u32, kv_len: u32) -> Result<(), Error> {
        let problem = self.plan.problem();
        let shape = problem.shape();
        if problem.sequences().is_some() {
            return Err(Error::Unexpected { operand: Operand::QLens });
        }
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

pub(crate) fn bind(
    plan: &Plan,
    buffers: &Buffers<'_>,
    scope: &mut impl Scope,
) -> Result<Bound, Error> {
    let inner = &*plan.inner;
    buffers.check(&plan.needs())?;
    let cache = buffers.check_cache(plan.inner.problem.cache())?;
    let device = inner.attention.device();
    let bytes = uniform_bytes(inner)?;
    let uniforms = scope.run(device, || uniform_buffer(device, &bytes))??;
    // Stands for operands without elements, which cannot be bound themselves.
    let nothing = scope.run(device, || {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("wgpu-attention nothing"),
            size: NOTHING,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        })
    })?;
    let texels = inner.texels;
    let pack = scope.run(device, || {
        (texels > 0 && !cfg!(target_family = "wasm"))
            .then(|| texture::create(device, "wgpu-attention pack", texels))
    })?;
    let own = |slot: Slot| match (slot, &pack) {
        (Slot::PoolTexture | Slot::PoolTextureOut, Some(pack)) => Some(Bindable::Texture(pack)),
        _ => cache.and_then(|cache| cache.bindable(slot)),
    };
    let range = |slot: Slot, step: usize| match (slot, own(slot)) {
        (_, Some(bindable)) => bindable,
        (Slot::Lengths, _) => {
            let size = size_of::<LengthsUniform>() as u64;
            Range { buffer: &uniforms, offset: 0, size }.into()
        }
        (Slot::Problem, _) => {
            let size = size_of::<ProblemUniform>() as u64;
            Range { buffer: &uniforms, offset: (1 + step as u64) * stride(inner), size }.into()
        }
        _ => Bindable::from(storage(inner, buffers, slot).unwrap_or(Range {
            buffer: &nothing,
            offset: 0,
            size: NOTHING,
        })),
    };
    let dispatches = scope.run(device, || {
        let dispatch = |(at, step): (usize, &Step)| {
            step.pipeline.dispatch(device, step.grid, |slot| range(slot, at))
        };
        inner.steps.iter().enumerate().map(dispatch).collect()
    })?;
    Ok(Bound { plan: plan.clone(), recording: Recording(dispatches), uniforms })
}

impl Plan {
    /// What this plan needs of the caller's buffers.
    fn needs(&self) -> Vec<Need> {
        let problem = self.problem();
        let mut operands = problem.operands();
        if problem.is_arena() {
            operands.retain(|&operand| operand == Operand::Tables);
            operands.push(Operand::Arena);
        }
        let unit = |operand| problem.element_of(operand).bytes();
        let need = |operand| Need::new(operand, problem.bytes(operand), unit(operand));
        let mut needs: Vec<Need> = operands.into_iter().map(need).collect();
        if self.scratch_bytes() > 0 {
            needs.push(Need::memory(Operand::Scratch, self.scratch_bytes()));
        }
        needs
    }
}

/// The bytes that a storage slot binds; `None` if its operand has no elements.
fn storage<'a>(inner: &Inner, buffers: &Buffers<'a>, slot: Slot) -> Option<Range<'a>> {
    let operand = match slot {
        Slot::Scores => inner.variant.scores_in,
        Slot::Weights => inner.variant.weights_in,
        _ => *Operand::ALL.iter().find(|&&operand| Slot::of(operand) == Some(slot))?,
    };
    let buffer = buffers.get(operand)?;
    if operand == Operand::Scratch {
        let [matrix, partial] = inner.scratch;
        let base = buffers.scratch_base;
        let range = match slot {
            Slot::Scratch => {
                let offset = base + matrix.next_multiple_of(SCRATCH_ALIGNMENT);
                Range { buffer, offset, size: partial }
            }
            _ => Range { buffer, offset: base, size: matrix },
        };
        return Some(range).filter(|range| range.size > 0);
    }
    let end = inner.problem.bytes(operand);
    let offset = first_bound(inner, operand);
    (end > offset).then(|| Range { buffer, offset, size: end - offset })
}

/// The byte at which the binding begins that holds an operand.
fn first_bound(inner: &Inner, operand: Operand) -> u64 {
    let problem = &inner.problem;
    let first_byte = |o: Operand| {
        let span = problem.span(o);
        let byte = span.offset * u128::from(problem.element_of(o).bytes());
        (!span.is_empty()).then(|| u64::try_from(byte).unwrap_or(u64::MAX))
    };
    let first = if problem.is_arena() && operand != Operand::Tables {
        let homes = problem.operands().into_iter().filter(|&o| o != Operand::Tables);
        homes.filter_map(first_byte).min()
    } else {
        first_byte(operand)
    };
    crate::buffers::first_bound(first.unwrap_or(0), inner.attention.limits())
}

/// The same in elements of the operand's type.
fn first_element(inner: &Inner, operand: Operand) -> u32 {
    let unit = u64::from(inner.problem.element_of(operand).bytes());
    (first_bound(inner, operand) / unit) as u32
}

fn stride(inner: &Inner) -> u64 {
    let alignment = u64::from(inner.attention.limits().min_uniform_buffer_offset_alignment.max(16));
    (size_of::<ProblemUniform>() as u64).next_multiple_of(alignment)
}

pub(crate) fn owned_bytes(inner: &Inner) -> u64 {
    let pack = if inner.texels > 0 { texture::bytes(inner.texels) } else { 0 };
    (1 + inner.steps.len() as u64) * stride(inner) + NOTHING + pack
}

/// Lengths, then one problem a step.
fn uniform_bytes(inner: &Inner) -> Result<Vec<u8>, Error> {
    let stride = stride(inner) as usize;
    let shape = inner.problem.shape;
    let lengths = LengthsUniform::new(&inner.problem, shape.q_len, shape.kv_len)?;
    let mut bytes = bytemuck::bytes_of(&lengths).to_vec();
    for step in &inner.steps {
        bytes.resize(bytes.len().next_multiple_of(stride), 0);
        let uniform = ProblemUniform::new(inner, step, |operand| first_element(inner, operand))?;
        bytes.extend_from_slice(bytemuck::bytes_of(&uniform));
    }
    Ok(bytes)
}
