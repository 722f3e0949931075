//! Which WGSL files make which kernel, and the constants in front of them.
//!
//! A module is a prologue of constants followed by whole files. Lengths, strides, scale and band
//! are in a uniform, so only what shapes registers and workgroup memory is a constant.

#[cfg(any(target_family = "wasm", test))]
pub(crate) mod bare;
mod cached;
mod constants;
mod lanes;
mod loops;
mod matrix;
mod parts;
mod slot;
mod text;
mod tile;
mod workgroup;

pub(crate) use cached::{CACHE_THREADS, CacheKernel, PAGE_GROUPS};
pub(crate) use constants::{Constant, File, compose};
pub(crate) use loops::check_loops;
#[cfg(not(target_family = "wasm"))]
pub(crate) use matrix::matrix_tiles;
use parts::Parts;
pub(crate) use slot::Slot;
pub(crate) use text::{native_shader, shader};
pub(crate) use tile::Blocks;
pub use tile::Tile;
#[cfg(not(target_family = "wasm"))]
pub(crate) use tile::flash_tiles;
use tile::step;
pub(crate) use workgroup::check_workgroup;

use crate::{Method, Operand, Problem};

/// The stages. File, entry point and label carry the same word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kernel {
    Scores,
    Softmax,
    Values,
    Flash,
    Pack,
    Broadcast,
    Decode,
    FlashMatrix,
    Merge,
}

/// A complete WGSL module.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// The entry point, and the label.
    pub name: &'static str,
    pub wgsl: String,
    pub slots: Vec<Slot>,
    pub threads: u32,
    pub workgroup_bytes: u32,
}

/// What a module depends on besides the problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub method: Method,
    pub blocks: Blocks,
    /// Where stored scores and weights lie: their operand, or scratch. The same: in place.
    pub scores_in: Operand,
    pub weights_in: Operand,
    /// 1: a workgroup finishes its rows. More: partial results, then `merge`.
    pub splits: u32,
    /// Query heads whose rows ride together: all of a kv head, or 1.
    pub row_group: u32,
    /// Invocations of `softmax` and `merge`.
    pub row_threads: u32,
    /// The device has the type f16.
    pub native_f16: bool,
    /// A multiply-add is one instruction.
    pub fused_multiply_add: bool,
    /// A cache's pool is a texture.
    pub pool_texture: bool,
    /// K and V are first copied into a texture.
    pub packed: bool,
}

/// Rows that a workgroup of `pack` copies.
pub(crate) const PACK_THREADS: u32 = 64;

impl Kernel {
    pub const fn name(self) -> &'static str {
        match self {
            Kernel::Scores => "scores",
            Kernel::Softmax => "softmax",
            Kernel::Values => "values",
            Kernel::Flash => "flash",
            Kernel::Pack => "pack",
            Kernel::Broadcast => "broadcast",
            Kernel::Decode => "decode",
            Kernel::FlashMatrix => "flash_matrix",
            Kernel::Merge => "merge",
        }
    }

    const fn file(self) -> &'static File {
        match self {
            Kernel::Scores => shader!("scores"),
            Kernel::Softmax => shader!("softmax"),
            Kernel::Values => shader!("values"),
            Kernel::Flash => shader!("flash"),
            Kernel::Pack => native_shader!("pack"),
            Kernel::Broadcast => native_shader!("broadcast"),
            Kernel::Decode => shader!("decode"),
            Kernel::FlashMatrix => native_shader!("flash_matrix"),
            Kernel::Merge => shader!("merge"),
        }
    }

    /// Composes the module of this kernel for a problem.
    pub fn module(self, problem: &Problem, variant: &Variant) -> Module {
        let native = variant.native_f16 && !problem.is_arena();
        let mut parts = Parts::new(problem, native, variant.pool_texture || variant.packed);
        parts.files.push(shader!("output/weight"));
        let blocks = &variant.blocks;
        let (threads, workgroup_bytes) = match self {
            Kernel::Scores => {
                parts.tensors(&[Slot::Q, Slot::K]);
                parts.sequences();
                parts.final_score();
                parts.bias();
                parts.mask();
                parts.scores(variant.scores_in);
                (blocks.threads(), blocks.scores_bytes())
            }
            Kernel::Softmax => {
                parts.tables(&[Operand::Sinks]);
                parts.sinks();
                parts.scores(variant.scores_in);
                if variant.weights_in == variant.scores_in {
                    parts.files.push(shader!("output/weights_in_place"));
                } else {
                    parts.weights(variant.weights_in);
                }
                parts.lse();
                (variant.row_threads, workgroup::rounded(8 * variant.row_threads))
            }
            Kernel::Values => {
                parts.tensors(&[Slot::V]);
                parts.files.extend([shader!("tile/key_rows"), shader!("problem/span")]);
                parts.weights(variant.weights_in);
                parts.output(variant);
                (blocks.threads(), blocks.values_bytes())
            }
            Kernel::Flash => {
                parts.tensors(&[Slot::Q, Slot::K, Slot::V]);
                parts.files.push(shader!("tile/key_rows"));
                parts.sweep(variant);
                parts.tile(blocks.half_tile);
                parts.files.push(match variant.fused_multiply_add {
                    true => shader!("element/dots_chained"),
                    false => shader!("element/dots_fresh"),
                });
                parts.files.extend([shader!("tile/flash_tile"), shader!("score/fragment")]);
                parts.files.push(match blocks.tested {
                    true => shader!("problem/verdict_tested"),
                    false => shader!("problem/verdict_band"),
                });
                (blocks.threads(), blocks.flash_bytes())
            }
            // Browsers have none of these.
            Kernel::Pack | Kernel::Broadcast | Kernel::FlashMatrix
                if cfg!(target_family = "wasm") =>
            {
                (0, 0)
            }
            Kernel::Pack => {
                parts.tensors(&[Slot::K, Slot::V]);
                if problem.sequences().is_some() {
                    parts.files.push(native_shader!("problem/tokens_all"));
                } else {
                    parts.sequences();
                    parts.files.push(native_shader!("problem/tokens_each"));
                }
                parts.pool_write();
                (PACK_THREADS, 0)
            }
            Kernel::Broadcast => {
                match variant.packed {
                    true => parts.packed_tensors(),
                    false => parts.tensors(&[Slot::Q, Slot::K, Slot::V]),
                }
                parts.files.push(shader!("tile/key_rows"));
                if problem.cache().is_none() {
                    parts.files.push(shader!("operand/rows_unscaled"));
                }
                let paged = problem.cache().is_some_and(|cache| cache.paging.is_some());
                parts.files.push(match paged {
                    true => native_shader!("tile/tile_rows_paged"),
                    false => native_shader!("tile/tile_rows_steps"),
                });
                parts.sweep(variant);
                parts
                    .files
                    .extend([shader!("score/key_score"), native_shader!("problem/row_sight")]);
                parts.tame();
                parts.files.push(match blocks.lane_rows {
                    1 => native_shader!("tile/lane_rows_1"),
                    2 => native_shader!("tile/lane_rows_2"),
                    _ => native_shader!("tile/lane_rows_4"),
                });
                (blocks.threads(), 0)
            }
            Kernel::Decode => {
                parts.tensors(&[Slot::Q, Slot::K, Slot::V]);
                parts.files.push(shader!("tile/key_rows"));
                if problem.cache().is_some() {
                    parts.files.push(shader!("tile/four_rows_cached"));
                } else {
                    parts.files.extend([
                        shader!("operand/rows_unscaled"),
                        shader!("tile/four_rows_strided"),
                    ]);
                }
                parts.sweep(variant);
                parts.files.push(shader!("score/key_score"));
                (blocks.threads(), blocks.decode_bytes())
            }
            Kernel::FlashMatrix => {
                parts.tensors(&[Slot::Q, Slot::K, Slot::V]);
                parts.files.push(shader!("tile/key_rows"));
                parts.sweep(variant);
                parts.files.push(shader!("score/key_score"));
                parts.tame();
                parts.matrices(blocks.matrix.map_or(0, |matrix| matrix.size));
                (blocks.threads(), blocks.matrix_bytes())
            }
            Kernel::Merge => {
                parts.file(shader!("operand/scratch"), Slot::Scratch);
                parts.output(&Variant { splits: 1, ..*variant });
                (variant.row_threads, 0)
            }
        };
        parts.files.push(self.file());
        let (wgsl, slots) = parts.finish(&constants_of(problem, variant));
        Module { name: self.name(), wgsl, slots, threads, workgroup_bytes }
    }
}

/// All that a kernel of attention may name.
fn constants_of(problem: &Problem, variant: &Variant) -> [(Constant, u32); 24] {
    let shape = problem.shape;
    let blocks = &variant.blocks;
    [
        (Constant::HEAD_DIM, shape.head_dim),
        (Constant::VALUE_DIM, shape.value_dim),
        (Constant::HEAD_QUADS, shape.head_dim.div_ceil(4)),
        (Constant::VALUE_QUADS, shape.value_dim.div_ceil(4)),
        (Constant::THREADS_Q, blocks.threads_q),
        (Constant::THREADS_K, blocks.threads_k),
        (Constant::SUBGROUP_SIZE, blocks.lanes),
        (Constant::SUBGROUPS, blocks.matrix.map_or(0, |matrix| matrix.subgroups)),
        (Constant::MATRIX_THREADS, blocks.threads()),
        (Constant::TILE_QUERIES, blocks.tile().queries),
        (Constant::TILE_KEYS, 4 * blocks.threads_k),
        (Constant::DIM_QUADS, blocks.dim_quads),
        (Constant::KEY_CHUNK, blocks.key_chunk),
        (Constant::QUAD_STEP, blocks.quad_step(problem)),
        (Constant::KEY_STEP, step(blocks.key_chunk)),
        (Constant::TILE_QUADS, blocks.tile_quads()),
        (Constant::OUT_QUADS, blocks.out_quads),
        (Constant::COLUMN_QUADS, blocks.column_quads()),
        (Constant::COLUMN_TILES, blocks.column_tiles),
        (Constant::SOFTMAX_THREADS, variant.row_threads),
        (Constant::PACK_THREADS, PACK_THREADS),
        (Constant::MERGE_THREADS, variant.row_threads),
        (Constant::K_TEXELS, problem.cache().map_or(0, |cache| cache.k_texels())),
        (Constant::V_TEXELS, problem.cache().map_or(0, |cache| cache.v_texels())),
    ]
}
