// New rows of K and V, turned by their positions, at the end of each sequence of a cache.
//
// Workgroup: CACHE_THREADS texels of new rows.
// Thread:    one texel; in a cache with scales it reads its whole row to find the largest element.
// Memory:    none shared.
// Grid:      texels of a row, K's before V's, then heads, then tokens, then sequences.
// Twin:      cpu/cache.rs, append()
//
// Proof: `item` is tested against all there are, so batch, token and head lie within the operand that
// Append::validate checks, and dims are clamped below HEAD_DIM or VALUE_DIM. A row is written only
// below room() of its sequence; cache_row() clamps pages. The loops end after HEAD_QUADS,
// VALUE_QUADS or TEXEL_QUADS trips.

fn new_k(row: u32, dim: u32, position: u32) -> f32 {
    let at = min(dim, HEAD_DIM - 1u);
    let x = turned(k_at(row + at), k_at(row + partner(at)), at, position);
    return select(0.0, x, dim < HEAD_DIM);
}

fn new_v(row: u32, dim: u32) -> f32 {
    return select(0.0, v_at(row + min(dim, VALUE_DIM - 1u)), dim < VALUE_DIM);
}

fn new_quad(is_v: bool, row: u32, quad: u32, position: u32) -> vec4<f32> {
    let dim = 4u * quad;
    if (is_v) {
        return vec4(new_v(row, dim), new_v(row, dim + 1u), new_v(row, dim + 2u), new_v(row, dim + 3u));
    }
    return vec4(
        new_k(row, dim, position),
        new_k(row, dim + 1u, position),
        new_k(row, dim + 2u, position),
        new_k(row, dim + 3u, position),
    );
}

@compute @workgroup_size(CACHE_THREADS)
fn append(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let item = linear_group(id, size) * CACHE_THREADS + local;
    let texels = K_TEXELS + V_TEXELS;
    let head = item / texels % cache.kv_heads;
    let token = item / texels / cache.kv_heads % problem.kv_len;
    let sequence = item / texels / cache.kv_heads / problem.kv_len;
    if (sequence >= cache.sequences) {
        return;
    }
    let position = words[sequence] + token;
    let added = min(words[cache.counts + sequence], problem.kv_len);
    if (token >= added || position < token || position >= room(sequence)) {
        return;
    }
    let is_v = item % texels >= K_TEXELS;
    let texel = select(item % texels, item % texels - K_TEXELS, is_v);
    let start = row_start(select_strides(is_v), sequence, head, token);
    let row = cache_row(sequence, head, position);

    // value = scale * byte, the largest element at 127
    var scale = 1.0;
    if (HAS_SCALES) {
        var most = vec4(0.0);
        for (var quad = 0u; quad < select(HEAD_QUADS, VALUE_QUADS, is_v); quad++) {
            most = max(most, abs(new_quad(is_v, start, quad, position)));
        }
        scale = max(max(most.x, most.y), max(most.z, most.w)) / 127.0;
        let bits = bitcast<u32>(scale);
        if (bits > bitcast<u32>(LARGEST_SCALE) && bits < 0x7f800000u) {
            scale = LARGEST_SCALE;
        }
        if (texel == 0u) {
            words[cache.scales + select(row, cache.rows + row, is_v)] = bitcast<u32>(scale);
        }
    }
    var filled = vec4(0u);
    for (var quad = 0u; quad < TEXEL_QUADS; quad++) {
        var x = new_quad(is_v, start, texel * TEXEL_QUADS + quad, position);
        if (HAS_SCALES) {
            x = clamp(x / max(scale, SMALLEST_SCALE), vec4(-127.0), vec4(127.0));
        }
        filled = with_quad(filled, quad, x);
    }
    pool_store(select(row * K_TEXELS, cache.first_v + row * V_TEXELS, is_v) + texel, filled);
}

// Below the smallest normal number some devices see 0.
const SMALLEST_SCALE = 0x1p-126f;

// 127 times it is still a number, 127 times the next one is not.
const LARGEST_SCALE = 0x1.020406p+121f;

fn select_strides(is_v: bool) -> Strides {
    if (is_v) {
        return problem.v;
    }
    return problem.k;
}
