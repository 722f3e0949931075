//! Rotary position embedding: which elements turn together, by how much.

use crate::{CacheShape, Error, Operand};

/// Which two elements of a row are a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pairing {
    /// 2 p and 2 p + 1, as in the paper (GPT-J).
    Adjacent,
    /// p and p + pairs (GPT-NeoX, Llama as most programs store it).
    Halves,
}

/// Rotary embedding of queries and keys: pair p of a row at position t turns by an angle whose
/// cosine and sine are entry `[t, p]` of [`Operand::Rotary`]. Elements past the pairs stay.
///
/// Su et al., "RoFormer" (2021). The table is the caller's: any base, scaling or interpolation.
///
/// ```
/// use wgpu_attention::{Pairing, Rotary};
/// // 64 of a row's elements, positions 0 .. 1024, theta_p = 10000^(-p / 32).
/// let rotary = Rotary::new(32, 1024, Pairing::Halves);
/// let table = rotary.table(10_000.0);
/// assert_eq!((table.len(), table[0]), (2 * 32 * 1024, 1.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rotary {
    /// Pairs that turn; 2 * pairs <= head_dim.
    pub pairs: u32,
    /// Positions that the table has; at least the cache's capacity.
    pub positions: u32,
    /// Which elements are a pair.
    pub pairing: Pairing,
}

impl Rotary {
    /// So many pairs and positions.
    pub const fn new(pairs: u32, positions: u32, pairing: Pairing) -> Rotary {
        Rotary { pairs, positions, pairing }
    }

    /// The usual table: position t, pair p turns by t * base^(-p / pairs). f32
    /// `[position, pair, (cosine, sine)]`, computed in f64.
    pub fn table(&self, base: f64) -> Vec<f32> {
        let pairs = f64::from(self.pairs);
        let turn = move |t: u32, p: u32| {
            let (sine, cosine) = (f64::from(t) * base.powf(-f64::from(p) / pairs)).sin_cos();
            [cosine as f32, sine as f32]
        };
        (0..self.positions).flat_map(|t| (0..self.pairs).flat_map(move |p| turn(t, p))).collect()
    }

    /// Numbers of the table.
    pub fn elements(&self) -> u64 {
        2 * u64::from(self.pairs) * u64::from(self.positions)
    }

    pub(crate) fn validate(&self, cache: &CacheShape) -> Result<(), Error> {
        let refused = |what, need, got: u64| Err(Error::Size { what, need, got: got.into() });
        if self.pairs == 0 || 2 * u64::from(self.pairs) > cache.head_dim.into() {
            return refused("rotary pairs", "1 to head_dim / 2", self.pairs.into());
        }
        if self.positions < cache.capacity {
            let need = "at least the cache's capacity";
            return refused("rotary positions", need, self.positions.into());
        }
        if self.elements() > 1 << 32 {
            return refused(Operand::Rotary.name(), "at most 2^32 numbers", self.elements());
        }
        Ok(())
    }

    /// The other element of a dim's pair, and whether the dim is the first of the two; `None` for
    /// one that stays.
    pub(crate) fn partner(&self, dim: u32) -> Option<(u32, u32, bool)> {
        let pairs = self.pairs;
        match self.pairing {
            _ if dim >= 2 * pairs => None,
            Pairing::Adjacent => Some((dim / 2, dim ^ 1, dim.is_multiple_of(2))),
            Pairing::Halves if dim < pairs => Some((dim, dim + pairs, true)),
            Pairing::Halves => Some((dim - pairs, dim - pairs, false)),
        }
    }
}
