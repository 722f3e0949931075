use super::*;
use crate::{Group, Shape};

/// What the proof of flash.wgsl takes for granted.
fn check(problem: &Problem, blocks: &Blocks, limits: &wgpu::Limits) {
    let at = || format!("{blocks:?}, dims {:?}", problem.shape);
    let quads = problem.shape.head_dim.div_ceil(4);
    let keys = 4 * blocks.threads_k;
    assert!(blocks.flash_bytes() <= limits.max_compute_workgroup_storage_size, "{}", at());
    assert!(blocks.threads() <= limits.max_compute_invocations_per_workgroup, "{}", at());
    assert!((1..=quads).contains(&blocks.dim_quads), "{}", at());
    for first in (0..quads).step_by(blocks.dim_quads as usize) {
        let chunk = blocks.dim_quads.min(quads - first);
        assert!(chunk.is_multiple_of(blocks.quad_step(problem)), "{}", at());
    }
    assert!((keys - 1) * odd(blocks.dim_quads) + blocks.dim_quads <= blocks.tile_quads());
    assert!(blocks.key_chunk * blocks.column_quads() <= blocks.tile_quads(), "{}", at());
    assert!(keys.is_multiple_of(blocks.key_chunk), "{}", at());
    assert!(blocks.key_chunk.is_multiple_of(step(blocks.key_chunk)), "{}", at());
    assert!(4 * blocks.column_quads() >= problem.shape.value_dim, "{}", at());
}

/// Tiles of the table and by hand, odd ones among them, for dims of every remainder.
#[test]
fn chunks_are_whole_and_fit() {
    let by_hand = [(4, 4), (12, 20), (20, 132), (40, 132), (64, 128), (256, 12), (1024, 4)];
    let by_hand = by_hand.map(|(queries, keys)| Some(Tile { queries, keys }));
    let mut planned = 0;
    for bytes in [1 << 10, 5000, 16 << 10, 32 << 10, 48 << 10, 100 << 10] {
        let limits = wgpu::Limits {
            max_compute_workgroup_storage_size: bytes,
            max_compute_invocations_per_workgroup: 1024,
            max_compute_workgroup_size_x: 1024,
            ..Default::default()
        };
        for head_dim in (1..=270).chain([512, 576, 926, 2048]) {
            for value_dim in [head_dim, 1 + head_dim * 7 % 300] {
                let shape = Shape::self_attention(1, 1, 1 + head_dim % 40, head_dim);
                let problem = Problem::new(shape.value_dim(value_dim));
                let half = problem.clone().element(Group::Keys, Element::F16);
                let tested = half.clone().bias_shape(&[1]);
                for problem in [problem, half, tested] {
                    for tile in by_hand.into_iter().chain([None]) {
                        let Ok(blocks) = Blocks::flash(&problem, tile, true, &limits) else {
                            continue;
                        };
                        check(&problem, &blocks, &limits);
                        planned += 1;
                    }
                }
            }
        }
    }
    assert!(planned > 30_000, "{planned}");
}
