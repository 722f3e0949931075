//! Sizes of cooperative matrices.

/// Square sizes of the matrices that an adapter multiplies, f16 in and f32 out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Matrices(u8);

/// Sizes that shaders can name, the best first: fewer and larger matrices do more a load.
const SIZES: [u32; 2] = [16, 8];

/// What matrix kernels need of a device.
pub(crate) const FEATURES: wgpu::Features = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX
    .union(wgpu::Features::SHADER_F16)
    .union(wgpu::Features::SUBGROUP);

pub(super) const FEATURES_MISSING: &str = "matrix units, that is EXPERIMENTAL_COOPERATIVE_MATRIX, \
    SHADER_F16 and SUBGROUP enabled on the device, as by Gpu::from_adapter";
pub(super) const SIZES_MISSING: &str = "matrices of 8 or 16 rows, f16 to f32, among the sizes that \
    Options::from_adapter finds";

impl Matrices {
    /// Those of a list in rows and columns that there are kernels for.
    pub fn of_sizes(sizes: &[u32]) -> Matrices {
        let known = SIZES.iter().enumerate().filter(|(_, size)| sizes.contains(size));
        Matrices(known.fold(0, |bits, (at, _)| bits | 1 << at))
    }

    pub fn of_adapter(adapter: &wgpu::Adapter) -> Matrices {
        use wgpu::CooperativeScalarType::{F16, F32};
        // wgpu has none in browsers.
        if cfg!(target_family = "wasm") {
            return Matrices::default();
        }
        let all = adapter.cooperative_matrix_properties();
        let square = |p: &wgpu::CooperativeMatrixProperties| {
            let types = (p.ab_type, p.cr_type) == (F16, F32);
            (types && p.m_size == p.n_size && p.n_size == p.k_size).then_some(p.m_size)
        };
        Matrices::of_sizes(&all.iter().filter_map(square).collect::<Vec<_>>())
    }

    /// The best size, if there is any.
    pub fn best(self) -> Option<u32> {
        SIZES.iter().enumerate().find(|(at, _)| self.0 >> at & 1 == 1).map(|(_, &size)| size)
    }
}
