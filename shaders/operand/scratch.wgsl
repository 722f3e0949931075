// Partial results [group, row of the tile, COLUMN_QUADS + 1]: the unnormalised output of one
// split, then (m, l, 0, 0).

@group(0) @binding(11) var<storage, read_write> scratch: array<vec4<f32>>;

fn partial_start(group: u32, row: u32) -> u32 {
    return (group * TILE_QUERIES + row) * (COLUMN_QUADS + 1u);
}
