// What the workgroup of `flash` keeps, and how K and V get there.

const DIM_STRIDE = DIM_QUADS | 1u;  // padded against bank conflicts

// [key, quad] of K, or of V
var<workgroup> tile: array<TileQuad, TILE_QUADS>;
// [row / 4, key]: four rows of P in a quad. Neighbours in x write side by side and read the same.
var<workgroup> weights_tile: array<vec4<f32>, THREADS_Q * TILE_KEYS>;
// [row / 4, x]
var<workgroup> row_parts: array<vec4<f32>, THREADS_Q * THREADS_K>;
// some number of V is not
var<workgroup> not_finite: atomic<u32>;

// DIM_QUADS of the keys from `first` on, beginning with quad `chunk`; 0 from key `end` on.
fn fill_keys(here: Place, local: u32, first: u32, end: u32, chunk: u32) {
    if (local == 0u) {
        atomicStore(&not_finite, 0u);
    }
    for (var at = local; at < TILE_KEYS * DIM_QUADS; at += THREADS_Q * THREADS_K) {
        let key = at / DIM_QUADS;
        let quad = at % DIM_QUADS;
        var k = vec4(0.0);
        if (first + key < end && chunk + quad < HEAD_QUADS) {
            k = load_k(key_row(here, first + key), chunk + quad);
        }
        tile[key * DIM_STRIDE + quad] = key_tile_quad(k);
    }
}

// KEY_CHUNK values from `first` on; 0 from key `end` on. `whole`: every row sees all of them.
fn fill_values(here: Place, local: u32, first: u32, end: u32, whole: bool) {
    for (var at = local; at < KEY_CHUNK * COLUMN_QUADS; at += THREADS_Q * THREADS_K) {
        let j = first + at / COLUMN_QUADS;
        let quad = at % COLUMN_QUADS;
        var v = vec4(0.0);
        if (j < end && quad < VALUE_QUADS) {
            v = load_v(value_row(here, j), quad);
        }
        // 0 * NaN must not leak from an excluded key
        let exponent = bitcast<vec4<u32>>(v) & vec4(0x7f800000u);
        if (!whole && any(exponent == vec4(0x7f800000u))) {
            atomicOr(&not_finite, 1u);
        }
        tile[at] = value_tile_quad(v);
    }
}
