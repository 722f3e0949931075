//! Kernels, tiles and copies by hand.

use crate::Tile;

/// How a plan computes attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// Three kernels, `scores`, `softmax`, `values`, with the scores stored between them.
    Staged,
    /// One kernel, `flash`, with an online softmax; memory grows with q_len, not q_len * kv_len.
    Flash,
    /// One kernel, `broadcast`, for software adapters: each lane of a subgroup holds query rows, and
    /// lanes hand each other keys and values. No workgroup memory. Needs `Features::SUBGROUP`.
    Broadcast,
    /// One kernel, `decode`, for few query rows: threads sweep keys of their own, with an online
    /// softmax, and merge at the end.
    Decode,
    /// One kernel, `flash_matrix`, on cooperative matrices: as `flash`, for Q, K and V in f16 and dims
    /// up to 128. Needs [`Options::from_adapter`](crate::Options::from_adapter) and a device with the
    /// features that it names.
    Matrix,
}

impl Method {
    /// All there are. Later versions may have more.
    pub const ALL: &'static [Method] =
        &[Method::Staged, Method::Flash, Method::Broadcast, Method::Decode, Method::Matrix];
}

/// A plan's method and tile by hand, for tests and tuning. The default leaves both to the planner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Choice {
    /// Method; `None`: staged if scores or weights are wanted, else one of the fused ones.
    pub method: Option<Method>,
    /// The fused kernel's tile; `None`: from the table.
    pub tile: Option<Tile>,
    /// Whether `broadcast` first copies K and V into a texture; `None`: where loads from one are
    /// cheaper. Those of a cache stay where they are.
    pub keys_in_texture: Option<bool>,
}

impl Choice {
    /// This method, the table's tile.
    pub const fn method(method: Method) -> Choice {
        Choice { method: Some(method), tile: None, keys_in_texture: None }
    }

    /// The same with this tile.
    #[must_use]
    pub const fn with_tile(self, tile: Tile) -> Choice {
        Choice { tile: Some(tile), ..self }
    }

    /// The same, and whether `broadcast` copies K and V into a texture.
    #[must_use]
    pub const fn with_keys_in_texture(self, yes: bool) -> Choice {
        Choice { keys_in_texture: Some(yes), ..self }
    }

    /// The fused kernel with this tile.
    pub const fn tile(tile: Tile) -> Choice {
        Choice::method(Method::Flash).with_tile(tile)
    }
}
