//! Loop iterations of one invocation, for drivers that silently end loops after so many.

use super::{Blocks, Kernel};
use crate::{Error, Problem};

/// Iterations of a loop of `trips`, its final test included, each of which costs `body` more.
/// Every loop of a kernel is counted as rolled, even where compilers unroll it, but those of one or two
/// steps of `flash`, which all Mesa with a limit unrolls, as it does the loops over quads of O.
const fn looped(trips: u64, body: u64) -> u64 {
    trips * (1 + body) + 1
}

/// The search for a packed sequence.
fn search(problem: &Problem) -> u64 {
    problem.sequences().map_or(0, |_| looped(32, 0))
}

/// Scores, biases and masks of four keys for four rows each.
fn fragment(problem: &Problem) -> u64 {
    // Biases are loaded twice.
    let loops = 1 + 2 * u64::from(problem.has_bias()) + u64::from(problem.has_mask());
    loops * 4 * looped(4, 0)
}

impl Blocks {
    /// Keys of one split so that no invocation of `values` or `flash` passes `limit` iterations:
    /// a power of two of tiles, the same for every call with this kernel on this adapter.
    ///
    /// # Errors
    /// [`Error::Limit`] if not even one tile stays below it.
    pub fn split_keys(&self, kernel: Kernel, problem: &Problem, limit: u32) -> Result<u32, Error> {
        let (tile, fixed) = self.iterations(kernel, problem);
        check_loops(tile + fixed, Some(limit))?;
        let tiles = ((u64::from(limit) - fixed) / tile).min(1 << 20) as u32;
        Ok((4 * self.threads_k) << tiles.ilog2())
    }

    /// Iterations of one tile of keys, and of everything outside the loop over tiles.
    fn iterations(&self, kernel: Kernel, problem: &Problem) -> (u64, u64) {
        let n = u64::from;
        let share = |items: u32| looped(n(items.div_ceil(self.threads())), 0);
        let keys = 4 * self.threads_k;
        let columns = self.column_quads();
        let out = looped(n(self.out_quads), 0);
        let quads = problem.shape.head_dim.div_ceil(4);
        let chunks = n(quads.div_ceil(self.dim_quads));
        let dots = looped(n(self.dim_quads), 0);
        match kernel {
            Kernel::Values => {
                let load = share(keys * self.threads_q) + share(keys * columns);
                (1 + load + looped(n(keys), out), search(problem) + 1 + out)
            }
            Kernel::Decode => {
                let (rows, out) = (n(self.lane_rows), n(self.out_quads));
                let each_row = looped(rows, 0);
                let tile = looped(n(quads), each_row) + each_row + looped(out, each_row);
                let lanes = looped(n(self.threads_k), 0);
                let chunk = looped(8, 0) + looped(8, lanes);
                let end = looped(rows, lanes + looped(out.div_ceil(8), chunk));
                (1 + tile, search(problem) + 1 + looped(rows, looped(n(quads), 0)) + end)
            }
            Kernel::Broadcast => {
                // Loops over arrays of registers are unrolled by all Mesa with a limit.
                let unrolled = |trips: u64| if trips > 32 { looped(trips, 0) } else { 0 };
                let (keys, quads, out) = (n(keys), n(quads), n(self.out_quads));
                let dots = looped(keys, unrolled(quads));
                let mix = looped(keys / 2, unrolled(out));
                // Each tile is looked at once more.
                let sight = if problem.has_mask() { looped(2, 0) } else { 0 };
                let rows = unrolled(quads) + unrolled(out);
                // And values that are not finite are added at the end.
                let wild = if problem.hides_keys() { looped(keys, unrolled(out)) } else { 0 };
                (1 + sight + dots + unrolled(out) + mix + wild, search(problem) + 1 + rows)
            }
            // Not in browsers, where every byte is downloaded.
            Kernel::FlashMatrix if !cfg!(target_family = "wasm") => {
                let Some(matrix) = self.matrix else { return (1, 0) };
                let dims = [problem.shape.head_dim, problem.shape.value_dim];
                let blocks = dims.map(|dim| n(dim.div_ceil(matrix.size)));
                let (queries, key_blocks) = (self.tile().queries, n(keys / matrix.size));
                let rows = n(queries / (matrix.size * matrix.subgroups));
                let each_row = looped(rows, 0);
                let fill = |rows: u32, dim: u32| share(rows * dim.next_multiple_of(16) / 4);
                let sums = looped(blocks[0], each_row);
                let s = looped(key_blocks, 2 * each_row + sums);
                let row_keys = looped(n(keys * queries / self.threads()), 0);
                let part = looped(key_blocks, each_row);
                let move_o = looped(blocks[1], 2 * part + row_keys);
                let mix = looped(key_blocks, each_row + looped(blocks[1], each_row));
                let begin = looped(rows, looped(blocks[0], 0) + looped(blocks[1], 0));
                let zeros = share(queries * (keys + 4));
                let fixed = fill(queries, dims[0]) + zeros + begin + move_o;
                let load = fill(keys, dims[0]) + fill(keys, dims[1]);
                // The row's sums over its threads, of which there are four at most.
                let softmax = 3 * row_keys + looped(4, 0);
                (1 + load + s + softmax + move_o + mix, search(problem) + 1 + fixed)
            }
            Kernel::Scores => {
                let load =
                    share(4 * self.threads_q * self.dim_quads) + share(keys * self.dim_quads);
                (looped(chunks, load + dots), looped(4, search(problem)))
            }
            _ => {
                let s = looped(chunks, share(keys * self.dim_quads) + dots) + fragment(problem);
                let m = looped(n(self.threads_k), 0);
                let mix = share(self.key_chunk * columns) + looped(n(self.key_chunk), out);
                let o = looped(n(keys / self.key_chunk), mix);
                (1 + s + m + out + o, search(problem) + 1 + m + out)
            }
        }
    }

    /// The stages before `values` do not split: they must stay below the limit as they are.
    pub fn check_stages(
        &self,
        problem: &Problem,
        threads: u32,
        limit: Option<u32>,
    ) -> Result<(), Error> {
        let (tile, fixed) = self.iterations(Kernel::Scores, problem);
        check_loops(tile + fixed, limit)?;
        let sweep = looped(u64::from(problem.shape.kv_len.div_ceil(4 * threads)), 0);
        check_loops(2 * sweep + looped(u64::from(threads.ilog2()), 0), limit)
    }

    /// `merge` over so many splits.
    pub fn check_merge(
        &self,
        problem: &Problem,
        splits: u32,
        threads: u32,
        limit: Option<u32>,
    ) -> Result<(), Error> {
        let items = 4 * self.threads_q * self.column_quads();
        let each = 2 * looped(u64::from(splits), 0);
        check_loops(search(problem) + looped(u64::from(items.div_ceil(threads)), each), limit)
    }
}

/// Refuses a kernel that this adapter would not finish.
pub(crate) fn check_loops(need: u64, limit: Option<u32>) -> Result<(), Error> {
    match limit {
        Some(got) if need > got.into() => {
            Err(Error::Limit { what: "loop iterations of one invocation", need, got: got.into() })
        }
        _ => Ok(()),
    }
}
