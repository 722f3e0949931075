//! Which kernels compute a problem, and where they find its keys.

use super::{FEW_ROWS, check_groups_and_uniforms};
use crate::kernel::{Blocks, Slot};
use crate::{Attention, Choice, Error, Method, Operand, Problem, texture};

/// Query rows up to which `decode` beats `broadcast` on software adapters, with the keys of a cache in
/// a texture, which is attended to often, and in a buffer. For a few more it is as fast, but takes
/// seconds to compile.
const FEWEST_ROWS: [u32; 2] = [2, 1];
/// Query rows from which a tile of `flash_matrix` is not mostly idle.
const FEWEST_MATRIX_ROWS: u32 = 17;
/// Mesa keeps rows in registers only if loops over their quads have at most 32 trips.
const MOST_UNROLLED_DIM: u32 = 4 * 32;

pub(super) fn method(
    attention: &Attention,
    problem: &Problem,
    choice: Choice,
) -> Result<Method, Error> {
    let outputs = problem.outputs();
    // Without keys there is nothing to store.
    let stored = problem.shape.kv_len > 0;
    let matrix = [(outputs.scores, Operand::Scores), (outputs.weights, Operand::Weights)];
    let matrix = matrix.into_iter().find(|m| m.0 && stored).map(|m| m.1);
    match (choice.method, matrix) {
        (Some(method), Some(operand)) if method != Method::Staged => {
            Err(Error::Unexpected { operand })
        }
        (Some(Method::Staged), _) | (None, Some(_)) if stored => Ok(Method::Staged),
        (Some(method), _) if method != Method::Staged => Ok(method),
        (None, _) if choice.tile.is_none() => Ok(fused(attention, problem)),
        _ => Ok(Method::Flash),
    }
}

/// The best fused kernel: on software adapters, where a load from a texture is cheap and one from
/// workgroup memory is not, those without workgroup memory.
fn fused(attention: &Attention, problem: &Problem) -> Method {
    let in_texture = problem.cache().map(|cache| cache.in_texture(attention));
    let pack = || texture::check(problem.packed_texels(), attention.limits()).is_ok();
    let small = problem.shape.head_dim.max(problem.shape.value_dim) <= MOST_UNROLLED_DIM;
    let lanes = small && attention.lanes_of_subgroup().is_ok();
    let matrix = problem.riding_rows() >= FEWEST_MATRIX_ROWS
        && attention
            .matrix()
            .is_ok_and(|matrix| Blocks::matrix(problem, None, matrix, attention.limits()).is_ok());
    if !attention.prefers_textures() {
        if matrix { Method::Matrix } else { Method::Flash }
    } else if problem.riding_rows() <= FEWEST_ROWS[usize::from(in_texture != Some(true))] {
        Method::Decode
    } else if lanes && in_texture.unwrap_or_else(pack) {
        Method::Broadcast
    } else if in_texture == Some(true) || problem.riding_rows() <= FEW_ROWS {
        Method::Decode
    } else {
        Method::Flash
    }
}

/// Texels of the texture that K and V are copied into first; 0 for none. A copy takes about as long
/// as reading K and V once: it is made for tiles of rows that share them.
pub(super) fn packed_texels(
    attention: &Attention,
    problem: &Problem,
    choice: Choice,
    blocks: &Blocks,
) -> Result<u64, Error> {
    let several = problem.riding_rows() > blocks.tile().queries;
    let wanted = choice.keys_in_texture.unwrap_or(several && attention.prefers_textures());
    if cfg!(target_family = "wasm") || blocks.lanes == 0 || problem.cache().is_some() || !wanted {
        return Ok(0);
    }
    let texels = problem.packed_texels();
    texture::check(texels, attention.limits())?;
    check_groups_and_uniforms(Slot::PoolTextureOut, attention.limits())?;
    Ok(texels)
}
