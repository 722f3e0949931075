//! Buffers of finished host calls, kept for the next ones.

use std::sync::{Arc, Mutex, PoisonError};

use wgpu::BufferUsages as Usage;

/// What is kept at most, in bytes and in number: the oldest go first.
const MOST_BYTES: u64 = 256 << 20;
const MOST_BUFFERS: usize = 64;

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Bound by kernels.
    Operand,
    /// Written by the host, copied from. Mapped between calls.
    Upload,
    /// Copied to, read by the host.
    Readback,
}

impl Use {
    fn usage(self) -> Usage {
        match self {
            Use::Operand => Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST,
            Use::Upload => Usage::MAP_WRITE | Usage::COPY_SRC,
            Use::Readback => Usage::MAP_READ | Usage::COPY_DST,
        }
    }
}

/// Shared by all clones of a [`Gpu`](super::Gpu).
#[derive(Clone, Debug, Default)]
pub(super) struct Spare {
    buffers: Arc<Mutex<Vec<(Use, wgpu::Buffer)>>>,
}

impl Spare {
    /// A kept buffer of this size with whatever an earlier call has left in it, or none.
    pub fn take(&self, kind: Use, size: u64) -> Option<wgpu::Buffer> {
        let mut kept = self.lock();
        let at = kept.iter().rposition(|(k, buffer)| *k == kind && buffer.size() == size)?;
        Some(kept.remove(at).1)
    }

    /// A new one of zeros, for an error scope to watch.
    pub fn make(device: &wgpu::Device, kind: Use, size: u64, label: &str) -> wgpu::Buffer {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size,
            usage: kind.usage(),
            mapped_at_creation: kind == Use::Upload,
        })
    }

    /// Keeps a buffer that no work uses any more.
    pub fn give(&self, kind: Use, buffer: wgpu::Buffer) {
        let mut kept = self.lock();
        kept.push((kind, buffer));
        let mut bytes: u64 = kept.iter().map(|(_, buffer)| buffer.size()).sum();
        while bytes > MOST_BYTES || kept.len() > MOST_BUFFERS {
            bytes -= kept.remove(0).1.size();
        }
    }

    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Use, wgpu::Buffer)>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gpu, Inputs, Problem, Shape};

    /// No GPU: nothing is computed, but buffers are made, mapped and kept.
    #[test]
    fn a_second_call_makes_no_buffers() {
        let (device, queue) = wgpu::Device::noop(&Default::default());
        let gpu = Gpu::from_device(device, queue);
        let problem = Problem::new(Shape::self_attention(1, 2, 5, 4)).lse();
        let x = [1.0; 40];
        let kept = || {
            gpu.attention(&problem, Inputs::new(&x, &x, &x)).expect("a good call");
            gpu.spare.lock().clone()
        };
        let first = kept();
        let of = |kind: Use| first.iter().filter(|kept| kept.0 == kind).count();
        assert_eq!([Use::Upload, Use::Readback].map(of), [3, 2]);
        let second = kept();
        assert_eq!(second.len(), first.len());
        assert!(second.iter().all(|kept| first.contains(kept)));
        gpu.trim();
        assert!(gpu.spare.lock().is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (device, _queue) = wgpu::Device::noop(&Default::default());
        let spare = Spare::default();
        let give = |size| spare.give(Use::Operand, Spare::make(&device, Use::Operand, size, "x"));
        (0..2 * MOST_BUFFERS).for_each(|_| give(16));
        assert_eq!(spare.lock().len(), MOST_BUFFERS);
        give(MOST_BYTES - 32);
        assert_eq!(spare.lock().len(), 3);
        give(16);
        assert_eq!(spare.lock().len(), 3);
    }
}
