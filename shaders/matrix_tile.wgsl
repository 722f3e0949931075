// What the workgroup of `flash_matrix` keeps, and how its subgroups share it.

const ROW_BLOCKS = TILE_QUERIES / (SUBGROUPS * MATRIX);
const KEY_BLOCKS = TILE_KEYS / MATRIX;
const HEAD_BLOCKS = (HEAD_DIM + MATRIX - 1u) / MATRIX;
const VALUE_BLOCKS = (VALUE_DIM + MATRIX - 1u) / MATRIX;
const TILE_DIMS = max(HEAD_BLOCKS, VALUE_BLOCKS) * MATRIX;
const TILE_ROWS = max(TILE_QUERIES, 2u * TILE_KEYS);
// Rows begin at multiples of 16 bytes, as matrices must, and neighbours in different banks.
const TILE_STRIDE = TILE_DIMS + 8u;
const SCORE_STRIDE = TILE_KEYS + 4u;
const WEIGHT_STRIDE = TILE_KEYS + 8u;
const ROW_THREADS = MATRIX_THREADS / TILE_QUERIES;

// ln 256: P stays far below the largest f16.
const SLACK = 5.545177f;

// [row, dim]: Q; or K, and V behind it
var<workgroup> tile: array<f16, TILE_ROWS * TILE_STRIDE>;
// [row, key]
var<workgroup> scores_tile: array<f32, TILE_QUERIES * SCORE_STRIDE>;
var<workgroup> weights_tile: array<f16, TILE_QUERIES * WEIGHT_STRIDE>;
// [row, thread of the row]: its maximum, then its sum
var<workgroup> row_parts: array<f32, MATRIX_THREADS>;
var<workgroup> work: vec3<u32>;         // keys [x, y), and whether there is any work
var<workgroup> grown: atomic<u32>;      // some maximum has
var<workgroup> wild_keys: atomic<u32>;  // bit: V of that key of the tile is not finite

fn fill_tile(row: u32, quad: u32, value: vec4<f32>) {
    let at = row * TILE_STRIDE + 4u * quad;
    tile[at] = f16(value.x);
    tile[at + 1u] = f16(value.y);
    tile[at + 2u] = f16(value.z);
    tile[at + 3u] = f16(value.w);
}
