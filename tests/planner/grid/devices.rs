//! Pretended devices: those that resemble real ones by their names, and every size with every ability.

use wgpu::{Features, Limits};
use wgpu_attention::LoopLimit;

use crate::device::{PLAIN, Pretend, Traits};

const NONE: Features = Features::empty();
const F16: Features = Features::SHADER_F16;
const LANES: Features = Features::SUBGROUP;
const BOTH: Features = F16.union(LANES);
/// All that matrices take.
pub const MATRIX: Features = BOTH.union(Features::EXPERIMENTAL_COOPERATIVE_MATRIX);
const ANY: [u32; 2] = PLAIN.lanes;

#[derive(Clone, Debug)]
pub struct Device {
    pub name: String,
    pub limits: Limits,
    pub traits: Traits,
}

impl Device {
    pub fn new(name: &str) -> Device {
        Device { name: name.into(), limits: Limits::default(), traits: PLAIN }
    }

    pub fn pretend(&self) -> Pretend {
        Pretend::with(&self.limits, self.traits)
    }

    /// Workgroup memory.
    pub fn bytes(mut self, bytes: u32) -> Device {
        self.limits.max_compute_workgroup_storage_size = bytes;
        self
    }

    pub fn kib(self, kib: u32) -> Device {
        self.bytes(kib << 10)
    }

    /// Of a workgroup.
    pub fn threads(mut self, threads: u32) -> Device {
        self.limits.max_compute_invocations_per_workgroup = threads;
        self.limits.max_compute_workgroup_size_x = threads;
        self
    }

    pub fn features(mut self, features: Features, lanes: [u32; 2]) -> Device {
        (self.traits.features, self.traits.lanes) = (features, lanes);
        self
    }

    pub fn matrices(mut self, sizes: &'static [u32], lanes: [u32; 2]) -> Device {
        self.traits.matrices = sizes;
        self.features(MATRIX, lanes)
    }

    pub fn f16(self) -> Device {
        let lanes = self.traits.lanes;
        self.features(F16, lanes)
    }

    /// The largest binding and buffer, and storage buffers of a stage.
    fn buffers(mut self, mib: u64, count: u32) -> Device {
        self.limits.max_storage_buffer_binding_size = mib << 20;
        self.limits.max_buffer_size = mib << 20;
        self.limits.max_storage_buffers_per_shader_stage = count;
        self
    }

    pub fn with(mut self, change: impl Fn(&mut Limits)) -> Device {
        change(&mut self.limits);
        self
    }

    fn loops(mut self, most: u32) -> Device {
        self.traits.loop_limit = LoopLimit::Iterations(most);
        self
    }
}

/// Devices that resemble real ones, and some below what WebGPU promises.
pub fn named() -> Vec<Device> {
    let of = Device::new;
    let large = |name| of(name).buffers(2047, 64);
    let small = |name| of(name).buffers(128, 4);
    vec![
        of("browser default"),
        of("browser with f16").f16(),
        large("Apple-like").kib(32).threads(1024).matrices(&[8], [32, 32]),
        large("Apple-like, no matrices").kib(32).threads(1024).features(BOTH, [32, 32]),
        large("NVIDIA-like").kib(48).threads(1024).matrices(&[16], [32, 32]),
        large("NVIDIA-like, 64 KiB").kib(64).threads(1024).matrices(&[8, 16], [32, 32]),
        large("NVIDIA-like, no features").kib(48).threads(1024).features(NONE, [32, 32]),
        large("RDNA-like, wave32").kib(64).threads(1024).matrices(&[16], [32, 32]),
        large("RDNA-like, wave64").kib(64).threads(1024).matrices(&[16], [64, 64]),
        large("RDNA-like, either wave").kib(32).threads(1024).matrices(&[16], [32, 64]),
        large("GCN-like, wave64").kib(32).threads(1024).features(BOTH, [64, 64]),
        large("Intel-like").kib(64).threads(1024).features(BOTH, [8, 32]),
        large("Intel-like, matrices").kib(64).threads(1024).matrices(&[8], [8, 32]),
        of("Adreno-like").kib(32).threads(1024).features(BOTH, [64, 128]),
        of("Adreno-like, 128 lanes").kib(32).threads(512).matrices(&[16], [128, 128]),
        of("Mali-like").kib(32).threads(512).features(BOTH, [16, 16]),
        small("PowerVR-like").kib(16).threads(512).features(LANES, [32, 32]),
        of("llvmpipe-like").kib(32).threads(1024).features(BOTH, [8, 8]).loops(65_535),
        of("llvmpipe-like, Mesa 23").kib(32).threads(1024).features(BOTH, [8, 8]),
        of("SwiftShader-like").kib(32).threads(256).features(LANES, [4, 4]),
        small("GL-like").kib(16).threads(128),
        of("compatibility mode").threads(128).buffers(128, 4),
        of("below: 8 KiB").kib(8).threads(64),
        of("below: 32 threads").threads(32).features(BOTH, [8, 8]),
        of("below: 2 KiB, 8 threads").kib(2).threads(8).features(LANES, [4, 4]),
        of("below: 1 thread").threads(1),
        of("below: rows of 16").with(|limits| limits.max_compute_workgroup_size_x = 16),
        of("below: 1 MiB").buffers(1, 8),
        of("below: 7 buffers").kib(32).buffers(128, 7).matrices(&[8], [32, 32]),
        of("below: 64 workgroups").with(|limits| limits.max_compute_workgroups_per_dimension = 64),
        of("below: 8 bindings").with(|limits| limits.max_bindings_per_bind_group = 8),
        of("below: no textures")
            .features(LANES, [8, 8])
            .with(|limits| limits.max_storage_textures_per_shader_stage = 0),
        of("below: loops of 2,000").kib(32).matrices(&[16], [32, 32]).loops(2000),
    ]
}

/// Every ability.
fn abilities() -> Vec<Traits> {
    let sizes = [[4, 4], [8, 8], [16, 16], [32, 32], [64, 64], [32, 64], [8, 32], [128, 128]];
    let mut all = vec![(NONE, ANY, &[][..]), (F16, ANY, &[])];
    for lanes in sizes {
        all.extend([(LANES, lanes, &[][..]), (BOTH, lanes, &[]), (MATRIX, lanes, &[])]);
        all.extend([&[8][..], &[16], &[8, 16]].map(|matrices| (MATRIX, lanes, matrices)));
    }
    // Nothing to multiply matrices with, though there are some.
    all.extend([(BOTH, [32, 32], &[16][..]), (MATRIX.difference(F16), [32, 32], &[16])]);
    let of = |(features, lanes, matrices)| Traits { features, lanes, matrices, ..PLAIN };
    all.into_iter().map(of).collect()
}

/// Workgroups of every size, each with every ability.
pub fn sized() -> Vec<Device> {
    let mut all = Vec::new();
    for kib in [16, 32, 48, 64] {
        for threads in [128, 256, 512, 1024] {
            for traits in abilities() {
                let name = format!("{kib} KiB, {threads} threads, {traits:?}");
                let device = Device::new(&name).kib(kib).threads(threads);
                all.push(Device { traits, ..device });
            }
        }
    }
    all
}
