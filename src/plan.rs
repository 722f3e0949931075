//! From a problem to the dispatches that compute it, all limits checked.

mod allowed;
mod limits;
mod method;

use std::sync::Arc;

use crate::attention::Pipeline;
use crate::kernel::{Blocks, Kernel, PACK_THREADS, Variant};
use crate::scope::Scope;
use crate::{Attention, Choice, Error, Method, Operand, Problem};
use allowed::allowed;
pub(crate) use limits::{check_binding, check_groups_and_uniforms, check_module, fold};
use limits::{check_bindings, largest_binding};
use method::packed_texels;

/// Invocations of the kernels that walk rows. The same for all lengths, so that a growing one does
/// not recompile.
const ROW_THREADS: u32 = 64;
/// Rows of a kv head up to which the keys are split over workgroups, since there is little else to
/// share out, and the keys of such a split.
const FEW_ROWS: u32 = 16;
const FEW_ROWS_SPLIT: u32 = 256;
const LANES_SPLIT: u32 = 512;
/// Keys that one lane sums in a row: more would cost digits.
const SERIAL_SPLIT: u32 = 1 << 14;
/// Partial results kept at a time; longer work is done in several rounds.
const PARTIAL_BYTES: u64 = 64 << 20;
/// Multiply-adds of one dispatch: a fraction of a second on a device of 1 TFLOP/s.
const DISPATCH_WORK: u64 = 1 << 37;
/// Rounds that this may come to: beyond it dispatches grow, since each round has its bind group.
const MOST_ROUNDS: u64 = 1024;
/// Storage buffer offsets in scratch: a multiple of every legal alignment.
pub(crate) const SCRATCH_ALIGNMENT: u64 = 256;

/// A problem made ready for one device: pipelines, grids, scratch. Reusable and cheap to clone.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub attention: Attention,
    pub problem: Problem,
    pub method: Method,
    pub variant: Variant,
    pub split_keys: u32,
    pub steps: Vec<Step>,
    /// Bytes of the stored matrix and of the partial results, in this order in scratch.
    pub scratch: [u64; 2],
    /// Of the texture that holds K and V.
    pub texels: u64,
}

/// One dispatch.
#[derive(Debug)]
pub(crate) struct Step {
    pub pipeline: Arc<Pipeline>,
    pub first_tile: u32,
    pub tiles: u32,
    /// Workgroups with work; the grid may have a few more.
    pub groups: u32,
    pub grid: [u32; 3],
}

impl Plan {
    pub(crate) fn new(
        attention: &Attention,
        problem: &Problem,
        choice: Choice,
        scope: &mut impl Scope,
    ) -> Result<Plan, Error> {
        problem.validate()?;
        #[cfg(not(target_family = "wasm"))]
        if choice == Choice::default() {
            // A choice that suits the class may not suit this problem: then there is none.
            let tuned = attention.tuned(problem).filter(|tuned| *tuned != choice);
            let tuned = tuned.map(|tuned| Plan::of_choice(attention, problem, tuned, scope));
            if let Some(Ok(plan)) = tuned {
                return Ok(plan);
            }
        }
        Plan::of_choice(attention, problem, choice, scope)
    }

    /// Of a problem that was validated.
    fn of_choice(
        attention: &Attention,
        problem: &Problem,
        choice: Choice,
        scope: &mut impl Scope,
    ) -> Result<Plan, Error> {
        problem.check_packed_output()?;
        problem.mask_bits()?;
        let method = allowed(attention, problem, choice)?;
        let limits = attention.limits();
        check_bindings(problem, limits)?;
        if let Some(cache) = problem.cache() {
            cache.check_memory(attention)?;
        }
        let blocks = match method {
            Method::Flash => Blocks::flash(problem, choice.tile, attention.has_f16(), limits)?,
            Method::Staged => Blocks::staged(problem, limits)?,
            Method::Broadcast => {
                let lanes = attention.lanes_of_subgroup()?;
                Blocks::broadcast(problem, choice.tile, lanes, attention.compile_cost(), limits)?
            }
            Method::Matrix => Blocks::matrix(problem, choice.tile, attention.matrix()?, limits)?,
            Method::Decode => Blocks::decode(problem, attention.lanes(), limits)?,
        };
        let texels = packed_texels(attention, problem, choice, &blocks)?;
        let row_threads = ROW_THREADS
            .min(limits.max_compute_invocations_per_workgroup)
            .min(limits.max_compute_workgroup_size_x);
        let row_threads = row_threads.min(limits.max_compute_workgroup_storage_size / 8);
        let row_threads = 1 << row_threads.max(1).ilog2();

        // The planner's side of the loop limit: keys in splits of a constant size.
        let sweep = match method {
            Method::Flash => Kernel::Flash,
            Method::Broadcast => Kernel::Broadcast,
            Method::Decode => Kernel::Decode,
            Method::Matrix => Kernel::FlashMatrix,
            Method::Staged => Kernel::Values,
        };
        let kv_len = problem.shape.kv_len;
        let mut split_keys = match attention.loop_limit() {
            Some(limit) => blocks.split_keys(sweep, problem, limit)?,
            None => 1 << 30,
        };
        if method != Method::Staged && problem.riding_rows() <= FEW_ROWS {
            let few = if method == Method::Decode { LANES_SPLIT } else { FEW_ROWS_SPLIT };
            split_keys = split_keys.min(few.next_multiple_of(blocks.tile().keys));
        }
        if method == Method::Broadcast {
            split_keys = split_keys.min(SERIAL_SPLIT);
        }
        let splits = kv_len.div_ceil(split_keys).max(1);
        let outputs = problem.outputs();
        let weights_in = if outputs.weights { Operand::Weights } else { Operand::Scratch };
        let scores_in = if outputs.scores { Operand::Scores } else { weights_in };
        let native_f16 = attention.has_f16();
        let row_group = if method != Method::Staged { problem.row_group() } else { 1 };
        let variant = Variant {
            method,
            blocks,
            scores_in,
            weights_in,
            splits,
            row_group,
            row_threads,
            native_f16,
            fused_multiply_add: attention.has_fused_multiply_add(),
            packed: texels > 0,
            pool_texture: problem.cache().is_some_and(|cache| cache.in_texture(attention)),
        };

        let mut inner = Inner {
            attention: attention.clone(),
            problem: problem.clone(),
            method,
            variant,
            split_keys,
            steps: Vec::new(),
            scratch: [0; 2],
            texels,
        };
        if problem.elements(Operand::O) > 0 {
            inner.add_steps(sweep, scope)?;
        }
        Ok(Plan { inner: Arc::new(inner) })
    }

    /// Bytes of the buffer the caller gives as [`Operand::Scratch`]; 0 if none is needed.
    pub fn scratch_bytes(&self) -> u64 {
        let [matrix, partial] = self.inner.scratch;
        if partial == 0 { matrix } else { matrix.next_multiple_of(SCRATCH_ALIGNMENT) + partial }
    }

    /// Bytes of GPU memory that a [`Bound`](crate::Bound) of this plan holds itself: uniforms, and the
    /// texture of `broadcast`.
    pub fn owned_bytes(&self) -> u64 {
        crate::bind::owned_bytes(&self.inner)
    }

    /// The problem this plan solves.
    pub fn problem(&self) -> &Problem {
        &self.inner.problem
    }

    /// How it is computed.
    pub fn method(&self) -> Method {
        self.inner.method
    }
}

impl Inner {
    fn add_steps(&mut self, sweep: Kernel, scope: &mut impl Scope) -> Result<(), Error> {
        let limits = self.attention.limits().clone();
        let Variant { blocks, splits, row_group, row_threads, .. } = self.variant;
        let shape = self.problem.shape;
        let tile = blocks.tile();
        let rows = u64::from(shape.batch) * u64::from(shape.q_heads);
        let row_tiles = rows / u64::from(row_group) * u64::from(self.query_tiles());
        if self.method == Method::Staged {
            blocks.check_stages(&self.problem, row_threads, self.attention.loop_limit())?;
            if self.variant.weights_in == Operand::Scratch {
                let scores = u128::from(rows) * u128::from(shape.q_len) * u128::from(shape.kv_len);
                let bytes = u64::try_from(4 * scores).unwrap_or(u64::MAX);
                check_binding("stored scores", bytes, &limits)?;
                if scores > 1 << 32 {
                    let need = "at most 2^32 stored scores";
                    return Err(Error::Size { what: "stored scores", need, got: scores });
                }
                self.scratch[0] = bytes;
            }
            // The matrix of all tokens, packed sequences or not.
            let tiles = [(shape.q_len, tile.queries), (shape.kv_len, tile.keys)];
            let [down, across] = tiles.map(|(tokens, tile)| u64::from(tokens.div_ceil(tile)));
            let scores = self.pipeline(Kernel::Scores, scope)?;
            self.add(&scores, 0, 1, rows * down * across)?;
            let softmax = self.pipeline(Kernel::Softmax, scope)?;
            self.add(&softmax, 0, 1, rows * u64::from(shape.q_len))?;
        }
        if self.texels > 0 {
            let rows = u64::from(shape.batch) * u64::from(shape.kv_heads) * u64::from(shape.kv_len);
            let pack = self.pipeline(Kernel::Pack, scope)?;
            self.add(&pack, 0, rows, rows.div_ceil(PACK_THREADS.into()))?;
        }
        let tiles = row_tiles * u64::from(blocks.column_tiles);
        // One dispatch must not keep the device for seconds: some systems reset it then.
        let dims = u64::from(shape.head_dim) + u64::from(shape.value_dim);
        let keys = u64::from(shape.kv_len).max(1);
        let tile_work = (u64::from(tile.queries) * keys).saturating_mul(dims);
        let most = (DISPATCH_WORK / tile_work).max(tiles.div_ceil(MOST_ROUNDS)).max(1);
        let sweep = self.pipeline(sweep, scope)?;
        if splits == 1 {
            for first in (0..tiles).step_by(most as usize) {
                let tiles = most.min(tiles - first);
                self.add(&sweep, first, tiles, tiles)?;
            }
            return Ok(());
        }
        // Rounds of as many tiles as their partial results find room for.
        blocks.check_merge(&self.problem, splits, row_threads, self.attention.loop_limit())?;
        let record = u64::from(tile.queries) * u64::from(blocks.column_quads() + 1) * 16;
        let tile_bytes = u64::from(splits) * record;
        check_binding("partial results of one tile", tile_bytes, &limits)?;
        let before = self.scratch[0].next_multiple_of(SCRATCH_ALIGNMENT);
        if before + tile_bytes > limits.max_buffer_size {
            let (need, got) = (before + tile_bytes, limits.max_buffer_size);
            return Err(Error::Limit { what: "scratch", need, got });
        }
        let room = largest_binding(&limits).min(limits.max_buffer_size - before);
        let round = (room.min(PARTIAL_BYTES.max(tile_bytes)) / tile_bytes).min(tiles).min(most);
        self.scratch[1] = round * tile_bytes;
        let merge = self.pipeline(Kernel::Merge, scope)?;
        for first in (0..tiles).step_by(round as usize) {
            let tiles = round.min(tiles - first);
            self.add(&sweep, first, tiles, tiles * u64::from(splits))?;
            self.add(&merge, first, tiles, tiles)?;
        }
        Ok(())
    }

    /// Tiles of the rows of the heads that ride together. Each packed sequence begins one of its own,
    /// wherever it begins.
    pub fn query_tiles(&self) -> u32 {
        let (q_len, queries) = (self.problem.shape.q_len, self.variant.blocks.tile().queries);
        match self.problem.sequences() {
            Some(sequences) => q_len / queries + sequences + 1,
            None => (q_len * self.variant.row_group).div_ceil(queries),
        }
    }

    fn pipeline(&self, kernel: Kernel, scope: &mut impl Scope) -> Result<Arc<Pipeline>, Error> {
        let module = kernel.module(&self.problem, &self.variant);
        check_module(&module, self.attention.limits())?;
        self.attention.pipeline(module, scope)
    }

    fn add(
        &mut self,
        pipeline: &Arc<Pipeline>,
        first_tile: u64,
        tiles: u64,
        groups: u64,
    ) -> Result<(), Error> {
        let most = self.attention.limits().max_compute_workgroups_per_dimension;
        let grid = fold(first_tile + groups, groups, most)?;
        let pipeline = pipeline.clone();
        let (first_tile, tiles, groups) = (first_tile as u32, tiles as u32, groups as u32);
        self.steps.push(Step { pipeline, first_tile, tiles, groups, grid });
        Ok(())
    }
}
