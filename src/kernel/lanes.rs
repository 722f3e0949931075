//! Tiles of the kernels whose threads hold whole rows: `decode` and `broadcast`.

use super::{Blocks, Tile, check_workgroup};
use crate::{Error, Problem};

/// Quads of Q and O that one thread of `decode` keeps for all its rows.
const MOST_LANE_QUADS: u32 = 160;
/// (most quads of Q and O that a lane of `broadcast` keeps for its rows, floating-point operations of a
/// call from which their compile time is worth it on Mesa 22): about 0.3, 0.8 and 2.2 s. Each step
/// repays its compile time within about 100 calls.
const LANES_TABLE: [(u32, u64); 3] = [(32, 0), (64, 400_000_000), (128, 4_000_000_000)];

/// Query rows that a lane of `broadcast` may hold, the most first, and keys that it takes at a time.
const LANE_ROWS: [u32; 3] = [4, 2, 1];
const MOST_LANE_KEYS: u32 = 16;

impl Blocks {
    /// The tiles of `broadcast`, for tuning.
    #[cfg(not(target_family = "wasm"))]
    pub fn broadcast_tiles(lanes: u32) -> impl Iterator<Item = Tile> {
        let keys = [MOST_LANE_KEYS, MOST_LANE_KEYS / 2];
        LANE_ROWS
            .into_iter()
            .flat_map(move |rows| keys.map(|keys| Tile { queries: rows * lanes, keys }))
    }

    /// Threads and rows of `decode`: as few rows as there are, so that no thread has idle ones.
    pub fn decode(problem: &Problem, threads: u32, limits: &wgpu::Limits) -> Result<Blocks, Error> {
        let shape = problem.shape;
        let quads = [shape.head_dim, shape.value_dim].map(|dim| dim.div_ceil(4));
        let room = (MOST_LANE_QUADS / (quads[0] + quads[1])).max(1);
        let rows = problem.riding_rows().next_power_of_two().min(4).min(1 << room.ilog2());
        let blocks = Blocks {
            threads_q: 1,
            threads_k: threads,
            dim_quads: 1,
            key_chunk: 1,
            out_quads: quads[1],
            column_tiles: 1,
            tested: false,
            half_tile: false,
            lane_rows: rows.max(1),
            lanes: 0,
            matrix: None,
        };
        check_workgroup(blocks.threads(), blocks.decode_bytes(), limits)?;
        Ok(blocks)
    }

    /// Rows and keys of `broadcast`: the caller's, or as many rows a lane as are worth compiling.
    pub fn broadcast(
        problem: &Problem,
        choice: Option<Tile>,
        lanes: u32,
        compile_cost: u64,
        limits: &wgpu::Limits,
    ) -> Result<Blocks, Error> {
        let shape = problem.shape;
        let quads = [shape.head_dim, shape.value_dim].map(|dim| dim.div_ceil(4));
        let lane_quads = quads[0] + quads[1];
        let rows = match choice {
            Some(tile) => tile.queries / lanes,
            None => {
                // Attention over a cache is called again for each new token.
                let calls = if problem.cache().is_some() { 10 } else { 1 };
                let fits = |rows: u32| {
                    let work = LANES_TABLE.iter().find(|row| rows * lane_quads <= row.0);
                    let worth = work.is_some_and(|row| {
                        problem.work().saturating_mul(calls) >= compile_cost * row.1
                    });
                    worth && rows * lanes <= problem.riding_rows()
                };
                LANE_ROWS.into_iter().find(|&rows| fits(rows)).unwrap_or(1)
            }
        };
        // Where each key is in a page of its own, every lane looks for one.
        let paged = problem.cache().is_some_and(|cache| cache.paging.is_some());
        let keys = choice
            .map_or(if paged { lanes.min(MOST_LANE_KEYS) } else { MOST_LANE_KEYS }, |tile| {
                tile.keys
            });
        let tile = Tile { queries: rows * lanes, keys };
        tile.validate()?;
        let good = choice.is_none_or(|choice| choice == tile) && LANE_ROWS.contains(&rows);
        if !good || keys > MOST_LANE_KEYS || (paged && keys > lanes) {
            let need =
                "1, 2 or 4 queries a lane, 4 to 16 keys; of a paged cache at most a key a lane";
            let got = u128::from(choice.map_or(keys, |tile| tile.queries));
            return Err(Error::Size { what: "tile of broadcast", need, got });
        }
        let blocks = Blocks {
            threads_q: 1,
            threads_k: keys / 4,
            dim_quads: 1,
            key_chunk: 1,
            out_quads: quads[1],
            column_tiles: 1,
            tested: false,
            half_tile: false,
            lane_rows: rows,
            lanes,
            matrix: None,
        };
        check_workgroup(blocks.threads(), 0, limits)?;
        Ok(blocks)
    }
}
