//! The caller's buffers, what is needed of them, and what is recorded once they are bound.

use crate::{CacheShape, Error, KvCache, Operand};

/// The caller's buffers, each with usage [`wgpu::BufferUsages::STORAGE`].
///
/// Operands lie in their buffers as the layouts say, offset included. Operands that are only read
/// may share a buffer; whatever is written needs one of its own, or [`Buffers::arena`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Buffers<'a> {
    given: [Option<&'a wgpu::Buffer>; Operand::ALL.len()],
    pub(crate) cache: Option<&'a KvCache>,
    /// Bytes at the front of the scratch buffer that belong to someone else.
    pub(crate) scratch_base: u64,
}

impl Default for Buffers<'_> {
    fn default() -> Self {
        Buffers { given: [None; Operand::ALL.len()], cache: None, scratch_base: 0 }
    }
}

impl<'a> Buffers<'a> {
    /// Q, K, V and O, for attention.
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

    /// Q and O, and a cache for K and V, for [`Problem::cached`](crate::Problem::cached).
    pub fn cached(q: &'a wgpu::Buffer, cache: &'a KvCache, o: &'a wgpu::Buffer) -> Buffers<'a> {
        Buffers { cache: Some(cache), ..Buffers::default() }.with(Operand::Q, q).with(Operand::O, o)
    }

    /// The cache that appended rows go to, or that K and V come from.
    pub fn cache(self, cache: &'a KvCache) -> Buffers<'a> {
        Buffers { cache: Some(cache), ..self }
    }

    /// Everything but scratch and tables in one buffer, for [`Problem::arena`](crate::Problem::arena).
    pub fn arena(arena: &'a wgpu::Buffer) -> Buffers<'a> {
        Buffers::default().with(Operand::Arena, arena)
    }

    /// One more operand, or another buffer for one.
    pub fn with(mut self, operand: Operand, buffer: &'a wgpu::Buffer) -> Buffers<'a> {
        self.given[operand as usize] = Some(buffer);
        self
    }

    pub(crate) fn get(&self, operand: Operand) -> Option<&'a wgpu::Buffer> {
        self.given[operand as usize]
    }

    /// The same buffer under the name that a part of the work knows it by.
    pub(crate) fn renamed(self, from: &Buffers<'a>, operand: Operand, to: Operand) -> Buffers<'a> {
        match from.get(operand) {
            Some(buffer) => self.with(to, buffer),
            None => self,
        }
    }

    /// Checks what was given against all that is needed.
    pub(crate) fn check(&self, needs: &[Need]) -> Result<(), Error> {
        for &operand in Operand::ALL {
            let need = needs.iter().find(|need| need.operand == operand);
            match (need, self.get(operand)) {
                (None, None) => {}
                // A caller may give one scratch buffer to every plan.
                (None, Some(_)) if operand.is_working_memory() => {}
                (None, Some(_)) => return Err(Error::Unexpected { operand }),
                (Some(_), None) => return Err(Error::Missing { operand }),
                (Some(need), Some(buffer)) => self.check_one(need, buffer, needs)?,
            }
        }
        Ok(())
    }

    /// The cache, which must be there if and only if one of this shape is wanted.
    pub(crate) fn check_cache(
        &self,
        want: Option<&CacheShape>,
    ) -> Result<Option<&'a KvCache>, Error> {
        let operand = Operand::Cache;
        match (want, self.cache) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(Error::Unexpected { operand }),
            (Some(_), None) => Err(Error::Missing { operand }),
            (Some(want), Some(cache)) => cache.check_shape(want).map(|()| Some(cache)),
        }
    }

    fn check_one(
        &self,
        &Need { operand, bytes, unit, written }: &Need,
        buffer: &wgpu::Buffer,
        needs: &[Need],
    ) -> Result<(), Error> {
        let base = if operand == Operand::Scratch { self.scratch_base } else { 0 };
        let (need, got) = (bytes / unit, buffer.size().saturating_sub(base) / unit);
        if got < need {
            return Err(Error::Length { operand, need, got });
        }
        let usage = wgpu::BufferUsages::STORAGE;
        if bytes > 0 && !buffer.usage().contains(usage) {
            return Err(Error::Usage { operand, need: usage, got: buffer.usage() });
        }
        let shared = |other: &&Need| {
            // A scratch with a base is a range beside what else lies in that buffer.
            let apart =
                [operand, other.operand].contains(&Operand::Scratch) && self.scratch_base > 0;
            let counts = other.operand != operand && other.bytes > 0 && bytes > 0 && !apart;
            counts && self.get(other.operand) == Some(buffer)
        };
        match needs.iter().find(shared) {
            Some(other) if written => {
                let need = "a buffer of its own, or Problem::arena for all operands but scratch";
                Err(Error::Overlap { operand, other: other.operand, need })
            }
            _ => Ok(()),
        }
    }
}

/// What is needed of one operand's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub operand: Operand,
    pub bytes: u64,
    /// Bytes of one element.
    pub unit: u64,
    pub written: bool,
}

impl Need {
    pub fn new(operand: Operand, bytes: u64, unit: u32) -> Need {
        Need { operand, bytes, unit: unit.into(), written: operand.is_written() }
    }

    /// Memory that the work needs for itself.
    pub fn memory(operand: Operand, bytes: u64) -> Need {
        Need { operand, bytes, unit: 1, written: true }
    }
}

/// A buffer's bound bytes.
#[derive(Clone, Copy)]
pub(crate) struct Range<'a> {
    pub buffer: &'a wgpu::Buffer,
    pub offset: u64,
    pub size: u64,
}

/// What a slot is bound to.
#[derive(Clone, Copy)]
pub(crate) enum Bindable<'a> {
    Bytes(Range<'a>),
    Texture(&'a wgpu::TextureView),
}

impl<'a> From<Range<'a>> for Bindable<'a> {
    fn from(range: Range<'a>) -> Self {
        Bindable::Bytes(range)
    }
}

impl<'a> Bindable<'a> {
    pub fn whole(buffer: &'a wgpu::Buffer) -> Self {
        Bindable::Bytes(Range { buffer, offset: 0, size: buffer.size() })
    }

    pub fn entry(&self, binding: u32) -> wgpu::BindGroupEntry<'_> {
        let resource = match *self {
            Bindable::Texture(view) => wgpu::BindingResource::TextureView(view),
            Bindable::Bytes(Range { buffer, offset, size }) => {
                let size = wgpu::BufferSize::new(size);
                wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size })
            }
        };
        wgpu::BindGroupEntry { binding, resource }
    }
}

/// The byte at which a binding begins: the first one used, rounded down to what a binding may begin
/// at. So operands far into a large buffer can be bound.
pub(crate) fn first_bound(first: u64, limits: &wgpu::Limits) -> u64 {
    let alignment = u64::from(limits.min_storage_buffer_offset_alignment.max(32));
    first / alignment * alignment
}

/// A filled uniform buffer.
pub(crate) fn uniform_buffer(device: &wgpu::Device, bytes: &[u8]) -> Result<wgpu::Buffer, Error> {
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("wgpu-attention uniforms"),
        size: bytes.len() as u64,
        usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: true,
    });
    let refused = |error: wgpu::MapRangeError| Error::Device(error.to_string());
    buffer.get_mapped_range_mut(..).map_err(refused)?.copy_from_slice(bytes);
    buffer.unmap();
    Ok(buffer)
}

/// Dispatches with everything bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording(pub Vec<(wgpu::ComputePipeline, wgpu::BindGroup, [u32; 3])>);

impl Recording {
    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
        for (pipeline, bind_group, [x, y, z]) in &self.0 {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, bind_group, &[]);
            pass.dispatch_workgroups(*x, *y, *z);
        }
    }
}

/// `encode` and `encode_in` of a bound thing with a [`Recording`], with what is said of them.
macro_rules! encodes {
    ($bound:ty, $says:literal) => {
        impl $bound {
            #[doc = $says]
            /// Sets pipeline and bind group 0, and leaves them set.
            pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
                self.recording.encode(pass);
            }

            /// Records one labelled pass into an encoder.
            pub fn encode_in(&self, encoder: &mut wgpu::CommandEncoder) {
                self.encode(&mut crate::buffers::begin_pass(encoder));
            }
        }
    };
}
pub(crate) use encodes;

/// One labelled pass.
pub(crate) fn begin_pass(encoder: &mut wgpu::CommandEncoder) -> wgpu::ComputePass<'_> {
    encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
        label: Some("wgpu-attention"),
        timestamp_writes: None,
    })
}
