//! Which WGSL files make the kernels of a cache.

use super::parts::Parts;
use super::{Constant, File, Module, Slot, shader};
use crate::{CacheShape, Pairing, Problem, Rotary};

/// The kernels of a cache. File, entry point and label carry the same word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheKernel {
    PageOut,
    PageIn,
    Rotate,
    Append,
    Bump,
    Unpack,
}

/// Workgroups that copy a sequence's page, if there is one to copy.
pub(crate) const PAGE_GROUPS: u32 = 8;
/// Invocations of a workgroup of each.
pub(crate) const CACHE_THREADS: u32 = 64;

impl CacheKernel {
    const fn name(self) -> &'static str {
        match self {
            CacheKernel::PageOut => "page_out",
            CacheKernel::PageIn => "page_in",
            CacheKernel::Rotate => "rotate",
            CacheKernel::Append => "append",
            CacheKernel::Bump => "bump",
            CacheKernel::Unpack => "unpack",
        }
    }

    const fn file(self) -> &'static File {
        match self {
            CacheKernel::PageOut => shader!("page_out"),
            CacheKernel::PageIn => shader!("page_in"),
            CacheKernel::Rotate => shader!("rotate"),
            CacheKernel::Append => shader!("append"),
            CacheKernel::Bump => shader!("bump"),
            CacheKernel::Unpack => shader!("unpack"),
        }
    }

    /// Composes the module: `problem` has the new rows, or their queries.
    pub fn module(
        self,
        problem: &Problem,
        cache: &CacheShape,
        rotary: Option<&Rotary>,
        [native_f16, pool_texture]: [bool; 2],
        threads: u32,
    ) -> Module {
        let mut parts = Parts::new(problem, native_f16, pool_texture);
        if matches!(self, CacheKernel::PageOut | CacheKernel::PageIn) {
            parts.forget_problem();
        }
        let writes = matches!(self, CacheKernel::PageIn | CacheKernel::Append | CacheKernel::Bump);
        match writes {
            true => parts.cache(shader!("cache/words_write"), Slot::WordsOut),
            false => parts.cache(shader!("cache/words_read"), Slot::Words),
        }
        match self {
            CacheKernel::PageOut => {
                parts.pool_read();
                parts.file(shader!("cache/page"), Slot::Scratch);
            }
            CacheKernel::PageIn => {
                parts.scales(cache);
                parts.pool_write();
                parts.file(shader!("cache/page"), Slot::Scratch);
            }
            CacheKernel::Rotate => {
                parts.rotary(rotary.is_some());
                parts.queries(false);
                parts.scatter(false);
                parts.slots.extend([Slot::Q, Slot::O]);
            }
            CacheKernel::Append => {
                parts.rotary(rotary.is_some());
                parts.keys(false);
                parts.slots.extend([Slot::K, Slot::V]);
                parts.texels(cache);
                parts.pool_write();
            }
            CacheKernel::Bump => {}
            CacheKernel::Unpack => {
                parts.texels(cache);
                parts.pool_read();
                parts.files.push(shader!("cache/keys_in_cache"));
                parts.slots.extend([Slot::KOut, Slot::VOut]);
            }
        }
        parts.files.push(self.file());
        let shape = problem.shape;
        let (pairs, positions) = rotary.map_or((0, 0), |rotary| (rotary.pairs, rotary.positions));
        let adjacent = rotary.is_some_and(|rotary| rotary.pairing == Pairing::Adjacent);
        let (wgsl, slots) = parts.finish(&[
            (Constant::HEAD_DIM, shape.head_dim),
            (Constant::VALUE_DIM, shape.value_dim),
            (Constant::HEAD_QUADS, shape.head_dim.div_ceil(4)),
            (Constant::VALUE_QUADS, shape.value_dim.div_ceil(4)),
            (Constant::K_TEXELS, cache.k_texels()),
            (Constant::V_TEXELS, cache.v_texels()),
            (Constant::ROTARY_PAIRS, pairs),
            (Constant::ROTARY_POSITIONS, positions),
            (Constant::ROTARY_ADJACENT, adjacent.into()),
            (Constant::CACHE_THREADS, threads),
            (Constant::PAGE_GROUPS, PAGE_GROUPS),
        ]);
        Module { name: self.name(), wgsl, slots, threads, workgroup_bytes: 0 }
    }
}
