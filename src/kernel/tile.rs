//! The tile table, the memory a tile takes, and the loop iterations it costs.

use super::matrix::Matrix;
use super::workgroup::{check_workgroup, rounded};
use crate::{Element, Error, Operand, Problem};

/// Query and key tokens that one workgroup of the fused kernel handles at a time.
///
/// A thread computes a fragment of 4 queries x 4 keys, so both are multiples of 4 and the
/// workgroup has `queries * keys / 16` invocations. `broadcast` has a workgroup of one subgroup, each
/// lane with 1, 2 or 4 of the queries, and 4 to 16 keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Query tokens, a multiple of 4.
    pub queries: u32,
    /// Key tokens, a multiple of 4.
    pub keys: u32,
}

impl Tile {
    pub(crate) fn validate(self) -> Result<(), Error> {
        let sizes = [("tile queries", self.queries), ("tile keys", self.keys)];
        match sizes.into_iter().find(|&(_, n)| n == 0 || n % 4 != 0 || n > 1024) {
            Some((what, n)) => {
                let need = "a multiple of 4 from 4 to 1024";
                Err(Error::Size { what, need, got: n.into() })
            }
            None => Ok(()),
        }
    }
}

/// (largest value_dim, most rows of a kv head, tile), tried in order: the first whose workgroup fits
/// the device. Few rows: small workgroups, of which a compute unit takes many. Long value rows: more
/// threads share one, so that a thread's part of O stays in registers.
const TABLE: [(u32, u32, Tile); 12] = [
    (128, 8, Tile { queries: 8, keys: 64 }),
    (64, 16, Tile { queries: 16, keys: 32 }),
    (128, 16, Tile { queries: 16, keys: 64 }),
    (64, u32::MAX, Tile { queries: 64, keys: 32 }),
    (64, u32::MAX, Tile { queries: 32, keys: 32 }),
    (128, u32::MAX, Tile { queries: 64, keys: 64 }),
    (128, u32::MAX, Tile { queries: 32, keys: 64 }),
    (256, u32::MAX, Tile { queries: 16, keys: 64 }),
    (u32::MAX, u32::MAX, Tile { queries: 8, keys: 128 }),
    // Devices below WebGPU's default limits.
    (u32::MAX, u32::MAX, Tile { queries: 16, keys: 32 }),
    (u32::MAX, u32::MAX, Tile { queries: 8, keys: 16 }),
    (u32::MAX, u32::MAX, Tile { queries: 4, keys: 4 }),
];

/// The table's tiles, for tuning.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn flash_tiles() -> impl Iterator<Item = Tile> {
    TABLE.iter().map(|row| row.2)
}

/// Value quads that one thread of `values` sums for each of its rows.
const VALUES_OUT_QUADS: u32 = 2;
/// The stages' tile: small enough for every device with WebGPU's default limits.
const STAGED: Tile = Tile { queries: 32, keys: 32 };
/// More workgroup memory for 64 invocations than this leaves a compute unit of AMD's with less than
/// four waves a SIMD.
const BYTES_A_WAVE: u32 = 8 << 10;
/// But where a thread's part of O takes more registers than this many quads a row anyway.
const BYTES_OF_LONG_ROWS: u32 = 16 << 10;
const LONG_ROWS: u32 = 4;
/// A thread keeps 4 rows of this many quads of O: more would not be registers anywhere.
const MOST_OUT_QUADS: u32 = 16;

/// A tile resolved for a problem and a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub threads_q: u32,
    pub threads_k: u32,
    /// Quads of a row of K (and, staged, of Q) that lie in workgroup memory at a time.
    pub dim_quads: u32,
    /// Keys whose V lies in workgroup memory at a time.
    pub key_chunk: u32,
    /// Quads of O that a thread keeps for each of its rows.
    pub out_quads: u32,
    /// Tiles along the value dims.
    pub column_tiles: u32,
    /// The fused kernel tests each tile for what mask and bias leave of it.
    pub tested: bool,
    /// The fused kernel keeps K and V in workgroup memory as f16, as they are stored.
    pub half_tile: bool,
    /// Whole rows of a thread of `decode` or `broadcast`; 0 for the others, with fragments of 4 x 4.
    pub lane_rows: u32,
    /// Threads of `broadcast`, each with rows of its own; 0 for the others.
    pub lanes: u32,
    /// Of `flash_matrix`.
    pub matrix: Option<Matrix>,
}

impl Blocks {
    pub fn tile(&self) -> Tile {
        let queries = match self.lane_rows {
            0 => 4 * self.threads_q,
            rows => rows * self.lanes.max(1),
        };
        Tile { queries, keys: 4 * self.threads_k }
    }

    pub fn threads(&self) -> u32 {
        match self.matrix {
            Some(matrix) => matrix.subgroups * matrix.lanes,
            None if self.lanes > 0 => self.lanes,
            None => self.threads_q * self.threads_k,
        }
    }

    pub fn column_quads(&self) -> u32 {
        let shared = self.lane_rows == 0 && self.matrix.is_none();
        self.out_quads * if shared { self.threads_k } else { 1 }
    }

    /// Quads of the workgroup memory that holds K, then V.
    pub fn tile_quads(&self) -> u32 {
        let k = 4 * self.threads_k * odd(self.dim_quads);
        k.max(self.key_chunk * self.column_quads())
    }

    /// Quads of the dot products that `flash` takes at once: a divisor of each chunk of them. Two of
    /// f16 are one load; more of f32 only take registers.
    pub fn quad_step(&self, problem: &Problem) -> u32 {
        if !self.half_tile {
            return 1;
        }
        let quads = problem.shape.head_dim.div_ceil(4);
        step(self.dim_quads).min(step(quads % self.dim_quads.max(1)))
    }

    fn p_bytes(&self) -> u32 {
        16 * 4 * self.threads_k * self.threads_q
    }

    /// P, the maxima of four keys each, the tile of K or V, and what tells about the tile.
    pub fn flash_bytes(&self) -> u32 {
        let quad_bytes = if self.half_tile { 8 } else { 16 };
        let flags = if self.tested { 3 } else { 1 };
        let tile = rounded(quad_bytes * self.tile_quads());
        self.p_bytes() + self.p_bytes() / 4 + tile + flags * rounded(4)
    }

    /// Eight quads, a maximum and a sum of each thread.
    pub fn decode_bytes(&self) -> u32 {
        self.threads_k * 8 * 16 + 2 * rounded(4 * self.threads_k)
    }

    pub fn scores_bytes(&self) -> u32 {
        16 * 4 * (self.threads_q + self.threads_k) * odd(self.dim_quads)
    }

    pub fn values_bytes(&self) -> u32 {
        self.p_bytes() + 16 * 4 * self.threads_k * self.column_quads()
    }

    /// The stages' tile for a problem.
    pub fn staged(problem: &Problem, limits: &wgpu::Limits) -> Result<Blocks, Error> {
        let shape = problem.shape;
        let (threads_q, threads_k) = (STAGED.queries / 4, STAGED.keys / 4);
        let columns = shape.value_dim.div_ceil(4).div_ceil(threads_k);
        let out_quads = columns.min(VALUES_OUT_QUADS);
        let dim_quads = shape.head_dim.div_ceil(4).min(8);
        let column_tiles = columns.div_ceil(out_quads);
        let key_chunk = STAGED.keys;
        let (tested, half_tile) = (false, false);
        let blocks = Blocks {
            threads_q,
            threads_k,
            dim_quads,
            key_chunk,
            out_quads,
            column_tiles,
            tested,
            half_tile,
            lane_rows: 0,
            lanes: 0,
            matrix: None,
        };
        let bytes = blocks.scores_bytes().max(blocks.values_bytes());
        check_workgroup(blocks.threads(), bytes, limits)?;
        Ok(blocks)
    }

    /// The fused kernel's tile for a problem: the caller's, or the table's.
    pub fn flash(
        problem: &Problem,
        choice: Option<Tile>,
        native_f16: bool,
        limits: &wgpu::Limits,
    ) -> Result<Blocks, Error> {
        let half_tile = native_f16 && problem.element_of(Operand::K) == Element::F16;
        if let Some(tile) = choice {
            return Blocks::of_tile(problem, tile, half_tile, limits);
        }
        let (value_dim, rows) = (problem.shape.value_dim, problem.riding_rows());
        let rows = TABLE.iter().filter(|row| value_dim <= row.0 && rows <= row.1);
        let mut refused = None;
        for (_, _, tile) in rows {
            match (Blocks::of_tile(problem, *tile, half_tile, limits), &refused) {
                (Ok(blocks), _) => return Ok(blocks),
                // The first tile is the one meant for this problem: what stops it is the reason.
                (Err(error), None) => refused = Some(error),
                (Err(_), Some(_)) => {}
            }
        }
        let (what, need) = ("value_dim of the fused kernel", value_dim.into());
        Err(refused.unwrap_or(Error::Limit { what, need, got: 0 }))
    }

    fn of_tile(
        problem: &Problem,
        tile: Tile,
        half_tile: bool,
        limits: &wgpu::Limits,
    ) -> Result<Blocks, Error> {
        tile.validate()?;
        let shape = problem.shape;
        let (threads_q, threads_k) = (tile.queries / 4, tile.keys / 4);
        let out_quads = shape.value_dim.div_ceil(4).div_ceil(threads_k);
        let mut blocks = Blocks {
            threads_q,
            threads_k,
            dim_quads: 1,
            key_chunk: 1,
            out_quads,
            column_tiles: 1,
            tested: problem.has_bias() || problem.has_mask(),
            half_tile,
            lane_rows: 0,
            lanes: 0,
            matrix: None,
        };
        if out_quads > MOST_OUT_QUADS {
            let most = 4 * threads_k * MOST_OUT_QUADS;
            return Err(Error::Limit {
                what: "value_dim of the fused kernel",
                need: shape.value_dim.into(),
                got: most.into(),
            });
        }
        check_workgroup(blocks.threads(), blocks.flash_bytes(), limits)?;
        // Use what memory there is: whole rows of K if they fit, as many keys of V as fit beside.
        let useful = match blocks.threads().div_ceil(64) {
            1 if out_quads >= LONG_ROWS => BYTES_OF_LONG_ROWS,
            waves => waves * BYTES_A_WAVE,
        };
        let budget = limits.max_compute_workgroup_storage_size.min(useful);
        let fits = |blocks: &Blocks| blocks.flash_bytes() <= budget;
        for dim_quads in 2..=shape.head_dim.div_ceil(4).min(16) {
            let wider = Blocks { dim_quads, ..blocks };
            blocks = if fits(&wider) { wider } else { blocks };
        }
        // Chunks of equal size rather than a full and a small one, and even where two quads are a load.
        let (quads, widest) = (shape.head_dim.div_ceil(4), blocks.dim_quads);
        let pairs = if half_tile && (2..quads).contains(&widest) { 2 } else { 1 };
        let chunks = quads.div_ceil(widest - widest % pairs);
        blocks.dim_quads = quads.div_ceil(chunks).next_multiple_of(pairs);
        while 2 * blocks.key_chunk <= tile.keys && tile.keys.is_multiple_of(2 * blocks.key_chunk) {
            let longer = Blocks { key_chunk: 2 * blocks.key_chunk, ..blocks };
            if !fits(&longer) {
                break;
            }
            blocks = longer;
        }
        Ok(blocks)
    }
}

/// Trips of a loop of so many that are written out: more take registers from other waves.
pub(super) const fn step(trips: u32) -> u32 {
    2 - trips % 2
}

/// Rows of an odd number of quads: neighbouring ones begin in different banks.
const fn odd(quads: u32) -> u32 {
    quads | 1
}

#[cfg(test)]
mod tests;
