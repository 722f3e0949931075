// What the workgroup of `flash_matrix` keeps, and how its subgroups share it.

const ROW_BLOCKS = TILE_QUERIES / (SUBGROUPS * MATRIX);
const KEY_BLOCKS = TILE_KEYS / MATRIX;
const HEAD_BLOCKS = (HEAD_DIM + MATRIX - 1u) / MATRIX;
const VALUE_BLOCKS = (VALUE_DIM + MATRIX - 1u) / MATRIX;
const HEAD_DIMS = HEAD_BLOCKS * MATRIX;
const VALUE_DIMS = VALUE_BLOCKS * MATRIX;
// Rows begin at multiples of 16 bytes, as matrices must, and those read most in banks of their own.
const KEY_STRIDE = HEAD_DIMS + 8u;
const VALUE_STRIDE = TILE_KEYS + 8u;
const SCORE_STRIDE = TILE_KEYS + 4u;
const WEIGHT_STRIDE = TILE_KEYS;
const FIRST_VALUE = TILE_KEYS * KEY_STRIDE;
const TILE_HALVES = max(TILE_QUERIES * KEY_STRIDE, FIRST_VALUE + VALUE_DIMS * VALUE_STRIDE);
const ROW_THREADS = MATRIX_THREADS / TILE_QUERIES;

// ln 256: P stays far below the largest f16.
const SLACK = 5.545177f;

// [row, dim]: Q; or K, and behind it [dim, key] V, whose columns a matrix loads whole that way
var<workgroup> tile: array<f16, TILE_HALVES>;
// [row, key]; behind the keys, of each thread of the row, its maximum, then its sum
var<workgroup> scores_tile: array<f32, TILE_QUERIES * SCORE_STRIDE>;
var<workgroup> weights_tile: array<f16, TILE_QUERIES * WEIGHT_STRIDE>;
var<workgroup> work: vec3<u32>;         // keys [x, y), and whether there is any work
var<workgroup> grown: atomic<u32>;      // some maximum has
var<workgroup> wild_keys: atomic<u32>;  // bit: V of that key of the tile is not finite

fn fill_row(row: u32, quad: u32, value: vec4<f32>) {
    let at = row * KEY_STRIDE + 4u * quad;
    tile[at] = f16(value.x);
    tile[at + 1u] = f16(value.y);
    tile[at + 2u] = f16(value.z);
    tile[at + 3u] = f16(value.w);
}

// Q into `tile`, and zeros into `scores_tile`.
fn fill_queries(here: Place, local: u32) {
    for (var at = local; at < TILE_QUERIES * HEAD_DIMS / 4u; at += MATRIX_THREADS) {
        let quad = at % (HEAD_DIMS / 4u);
        let number = at / (HEAD_DIMS / 4u);
        var q = vec4(0.0);
        if (quad < HEAD_QUADS) {
            let row = one_row(here, number);
            q = load_q(row_start(problem.q, here.sequence.batch, row.head, row.token), quad);
        }
        fill_row(number, quad, q);
    }
    for (var at = local; at < TILE_QUERIES * SCORE_STRIDE; at += MATRIX_THREADS) {
        scores_tile[at] = 0.0;
    }
}

// K and V of the keys from `first` on into `tile`; 0 from `end` on.
fn fill_keys(here: Place, local: u32, first: u32, end: u32) {
    for (var at = local; at < TILE_KEYS * HEAD_DIMS / 4u; at += MATRIX_THREADS) {
        let quad = at % (HEAD_DIMS / 4u);
        let j = at / (HEAD_DIMS / 4u);
        var k = vec4(0.0);
        if (first + j < end && quad < HEAD_QUADS) {
            k = load_k(key_row(here, first + j), quad);
        }
        fill_row(j, quad, k);
    }
    // Neighbours take eight keys of a quad, then the next quad: loads of several quads of a row lie
    // together, and so do stores of several keys of a dim.
    for (var at = local; at < TILE_KEYS * VALUE_DIMS / 4u; at += MATRIX_THREADS) {
        let quad = at / 8u % (VALUE_DIMS / 4u);
        let j = at % 8u + at / (2u * VALUE_DIMS) * 8u;
        let held = first + j < end;
        var v = vec4(0.0);
        if (held && quad < VALUE_QUADS) {
            v = load_v(value_row(here, first + j), quad);
        }
        // 0 * NaN must not leak from an excluded key
        if (is_wild(v)) {
            atomicOr(&wild_keys, 1u << j);
        }
        let kept = tame(v, held);
        let to = FIRST_VALUE + 4u * quad * VALUE_STRIDE + j;
        tile[to] = f16(kept.x);
        tile[to + VALUE_STRIDE] = f16(kept.y);
        tile[to + 2u * VALUE_STRIDE] = f16(kept.z);
        tile[to + 3u * VALUE_STRIDE] = f16(kept.w);
    }
}
