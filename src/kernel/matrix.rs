//! Tiles of `flash_matrix`.

use super::workgroup::rounded;
use super::{Blocks, Tile, check_workgroup};
use crate::{Element, Error, Operand, Problem};

/// Tried in order: the first whose workgroup fits the device.
const TABLE: [Tile; 3] = [
    Tile { queries: 64, keys: 32 },
    Tile { queries: 32, keys: 16 },
    // By hand and for tuners only: it takes more than the one before.
    Tile { queries: 32, keys: 32 },
];
/// Rows of Q and O of more dims than this are not held in registers.
const MOST_DIM: u32 = 128;
/// Keys of a tile, of which a word has a bit each.
const MOST_KEYS: u32 = 32;

/// Those whose subgroups have 1 to 4 lanes a row.
const LANES: &str = "subgroups of 8 to 64 lanes for matrices of 8 rows, of 16 to 64 for 16";

/// How the subgroups of a workgroup share its matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    /// Rows and columns.
    pub size: u32,
    pub subgroups: u32,
    /// The most lanes of a subgroup.
    pub lanes: u32,
    /// Dims of Q and K, and of V, filled up to whole matrices.
    pub dims: [u32; 2],
}

/// The table's tiles, for tuning.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn matrix_tiles() -> impl Iterator<Item = Tile> {
    TABLE.into_iter()
}

impl Blocks {
    /// Tile and subgroups of `flash_matrix` for matrices of `size` rows and subgroups of at most so
    /// many lanes: the caller's tile, or the table's.
    pub fn matrix(
        problem: &Problem,
        choice: Option<Tile>,
        [size, lanes]: [u32; 2],
        limits: &wgpu::Limits,
    ) -> Result<Blocks, Error> {
        let shape = problem.shape;
        let halves = |operand| problem.element_of(operand) == Element::F16;
        if !halves(Operand::Q) || !halves(Operand::K) {
            let what = "f16 for Q, K and V, as matrices multiply";
            return Err(Error::Limit { what, need: 1, got: 0 });
        }
        let dims = [("head_dim", shape.head_dim), ("value_dim", shape.value_dim)];
        if let Some((what, need)) = dims.into_iter().find(|dim| dim.1 > MOST_DIM) {
            return Err(Error::Limit { what, need: need.into(), got: MOST_DIM.into() });
        }
        if let Some(tile) = choice {
            return Blocks::of_matrices(problem, tile, [size, lanes], limits);
        }
        let mut refused = None;
        for tile in TABLE {
            match Blocks::of_matrices(problem, tile, [size, lanes], limits) {
                Ok(blocks) => return Ok(blocks),
                // The subgroups' doing, not the caller's.
                Err(Error::Size { .. }) => {}
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or(Error::Limit { what: LANES, need: 1, got: 0 }))
    }

    fn of_matrices(
        problem: &Problem,
        tile: Tile,
        [size, lanes]: [u32; 2],
        limits: &wgpu::Limits,
    ) -> Result<Blocks, Error> {
        tile.validate()?;
        // A second block of rows halves the loads of K and V a product, and doubles the registers of Q
        // and O: too many where matrices are large.
        let rows = if size == 8 && lanes >= 4 * size { 2 * size } else { size };
        let subgroups = tile.queries / rows;
        let whole = tile.queries.is_multiple_of(rows)
            && tile.keys.is_multiple_of(size)
            && tile.keys <= MOST_KEYS;
        // Each of them has a place behind the row's scores.
        let row_threads = (subgroups * lanes).checked_div(tile.queries).unwrap_or(0);
        let shared = row_threads * tile.queries == subgroups * lanes;
        if !whole || !shared || !(1..=4).contains(&row_threads) {
            let need = "whole matrices, as many queries as the subgroups have, at most 32 keys";
            let got = tile.queries.into();
            return Err(Error::Size { what: "tile of flash_matrix", need, got });
        }
        let dims = [problem.shape.head_dim, problem.shape.value_dim];
        let dims = dims.map(|dim| dim.next_multiple_of(size));
        let blocks = Blocks {
            threads_q: tile.queries / 4,
            threads_k: tile.keys / 4,
            dim_quads: 1,
            key_chunk: 1,
            out_quads: problem.shape.value_dim.div_ceil(4),
            column_tiles: 1,
            tested: false,
            half_tile: true,
            lane_rows: 0,
            lanes: 0,
            matrix: Some(Matrix { size, subgroups, lanes, dims }),
        };
        check_workgroup(blocks.threads(), blocks.matrix_bytes(), limits)?;
        Ok(blocks)
    }

    /// Q or K and V, S with four numbers a row, P, and three variables of one to three words.
    pub fn matrix_bytes(&self) -> u32 {
        let Tile { queries, keys } = self.tile();
        let [head_dims, value_dims] = self.matrix.map_or([0; 2], |matrix| matrix.dims);
        let row = head_dims + 8;
        let tile = (queries * row).max(keys * row + value_dims * (keys + 8));
        let scores = queries * (keys + 4);
        let weights = queries * keys;
        rounded(2 * tile) + rounded(4 * scores) + rounded(2 * weights) + 3 * rounded(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Group, Shape};

    /// What no tile of the table suits is the device's limit; a tile by hand is the caller's.
    #[test]
    fn who_is_to_blame() {
        let problem = Problem::new(Shape::self_attention(1, 1, 64, 64));
        let problem = problem.element(Group::Queries, Element::F16);
        let problem = problem.element(Group::Keys, Element::F16);
        let refused = |choice, sizes, limits: &wgpu::Limits| {
            Blocks::matrix(&problem, choice, sizes, limits).expect_err("no such tile")
        };
        let limits =
            wgpu::Limits { max_compute_workgroup_storage_size: 32 << 10, ..Default::default() };
        for sizes in [[16, 8], [16, 128], [8, 4]] {
            let error = refused(None, sizes, &limits);
            assert!(matches!(error, Error::Limit { .. }), "{sizes:?}: {error}");
            let error = refused(Some(TABLE[0]), sizes, &limits);
            assert!(matches!(error, Error::Size { .. }), "{sizes:?}: {error}");
        }
        let small = wgpu::Limits { max_compute_workgroup_storage_size: 1 << 10, ..limits.clone() };
        assert!(matches!(refused(None, [16, 32], &small), Error::Limit { got: 1024, .. }));
        assert!(Blocks::matrix(&problem, None, [16, 32], &limits).is_ok());
    }
}
