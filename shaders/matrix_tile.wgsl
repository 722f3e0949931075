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
// [row, key]; behind the keys, of each thread of the row, its maximum, then its sum
var<workgroup> scores_tile: array<f32, TILE_QUERIES * SCORE_STRIDE>;
var<workgroup> weights_tile: array<f16, TILE_QUERIES * WEIGHT_STRIDE>;
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

// Q into `tile`, and zeros into `scores_tile`.
fn fill_queries(here: Place, local: u32) {
    for (var at = local; at < TILE_QUERIES * TILE_DIMS / 4u; at += MATRIX_THREADS) {
        let quad = at % (TILE_DIMS / 4u);
        let number = at / (TILE_DIMS / 4u);
        var q = vec4(0.0);
        if (quad < HEAD_QUADS) {
            let row = one_row(here, number);
            q = load_q(row_start(problem.q, here.sequence.batch, row.head, row.token), quad);
        }
        fill_tile(number, quad, q);
    }
    for (var at = local; at < TILE_QUERIES * SCORE_STRIDE; at += MATRIX_THREADS) {
        scores_tile[at] = 0.0;
    }
}

// K and V of the keys from `first` on into `tile`; 0 from `end` on.
fn fill_keys(here: Place, local: u32, first: u32, end: u32) {
    for (var at = local; at < TILE_KEYS * TILE_DIMS / 4u; at += MATRIX_THREADS) {
        let quad = at % (TILE_DIMS / 4u);
        let j = at / (TILE_DIMS / 4u);
        let held = first + j < end;
        var k = vec4(0.0);
        var v = vec4(0.0);
        if (held && quad < HEAD_QUADS) {
            k = load_k(key_row(here, first + j), quad);
        }
        if (held && quad < VALUE_QUADS) {
            v = load_v(value_row(here, first + j), quad);
        }
        // 0 * NaN must not leak from an excluded key
        if (is_wild(v)) {
            atomicOr(&wild_keys, 1u << j);
        }
        fill_tile(j, quad, k);
        fill_tile(TILE_KEYS + j, quad, tame(v, held));
    }
}
