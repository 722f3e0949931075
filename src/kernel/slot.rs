//! What kernels bind.

use crate::Operand;
use crate::texture;

/// What a kernel binds, by its number in group 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Slot {
    Problem = 0,
    Lengths = 1,
    Q = 2,
    K = 3,
    V = 4,
    O = 5,
    Bias = 6,
    Lse = 7,
    Scores = 8,
    Weights = 9,
    Arena = 10,
    Scratch = 11,
    X = 12,
    W = 13,
    B = 14,
    Residual = 15,
    Y = 16,
    Mask = 17,
    Tables = 18,
    Cache = 21,
    Words = 22,
    WordsOut = 23,
    Pool = 24,
    PoolTexture = 25,
    PoolOut = 26,
    PoolTextureOut = 27,
    Rotary = 28,
    KOut = 29,
    VOut = 30,
    Parts = 19,
    PartsLse = 20,
}

impl Slot {
    pub fn kind(self) -> wgpu::BindingType {
        let ty = match self {
            Slot::PoolTexture => return pool_texture(wgpu::StorageTextureAccess::ReadOnly),
            Slot::PoolTextureOut => return pool_texture(wgpu::StorageTextureAccess::WriteOnly),
            Slot::Problem | Slot::Lengths | Slot::Cache => wgpu::BufferBindingType::Uniform,
            Slot::Q
            | Slot::K
            | Slot::V
            | Slot::Bias
            | Slot::Mask
            | Slot::Tables
            | Slot::X
            | Slot::W
            | Slot::B
            | Slot::Residual
            | Slot::Words
            | Slot::Pool
            | Slot::Rotary
            | Slot::Parts
            | Slot::PartsLse => wgpu::BufferBindingType::Storage { read_only: true },
            _ => wgpu::BufferBindingType::Storage { read_only: false },
        };
        wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None }
    }

    /// True for what counts as a storage buffer.
    pub fn is_storage(self) -> bool {
        let storage = |ty| matches!(ty, wgpu::BufferBindingType::Storage { .. });
        matches!(self.kind(), wgpu::BindingType::Buffer { ty, .. } if storage(ty))
    }

    pub fn is_texture(self) -> bool {
        matches!(self.kind(), wgpu::BindingType::StorageTexture { .. })
    }

    /// The slot of an operand that kernels bind by itself.
    pub fn of(operand: Operand) -> Option<Slot> {
        Some(match operand {
            Operand::Q => Slot::Q,
            Operand::K => Slot::K,
            Operand::V => Slot::V,
            Operand::O => Slot::O,
            Operand::Bias => Slot::Bias,
            Operand::Lse => Slot::Lse,
            Operand::Scores => Slot::Scores,
            Operand::Weights => Slot::Weights,
            Operand::Arena => Slot::Arena,
            Operand::Scratch => Slot::Scratch,
            Operand::X => Slot::X,
            Operand::W => Slot::W,
            Operand::B => Slot::B,
            Operand::Residual => Slot::Residual,
            Operand::Y => Slot::Y,
            Operand::Mask => Slot::Mask,
            Operand::Tables => Slot::Tables,
            Operand::Rotary => Slot::Rotary,
            Operand::Parts => Slot::Parts,
            Operand::PartsLse => Slot::PartsLse,
            _ => return None,
        })
    }
}

fn pool_texture(access: wgpu::StorageTextureAccess) -> wgpu::BindingType {
    let (format, view_dimension) = (texture::FORMAT, wgpu::TextureViewDimension::D2);
    wgpu::BindingType::StorageTexture { access, format, view_dimension }
}
