// The rows of a cache in plain f32, K [sequence, kv head, token, dim] and V likewise; 0 past each
// sequence's end.
//
// Workgroup: CACHE_THREADS quads.
// Thread:    one quad of K and one of V.
// Memory:    none shared.
// Grid:      quads of a row, then tokens, then heads, then sequences.
// Twin:      cpu/cache.rs, k()
//
// Proof: `sequence` is tested, so the rows lie within outputs that Unpack's plan sizes; quads are
// tested below HEAD_QUADS and VALUE_QUADS and elements below the row's end. Rows of the pool are read
// only below cached_tokens().

@group(0) @binding(29) var<storage, read_write> k_out: array<f32>;
@group(0) @binding(30) var<storage, read_write> v_out: array<f32>;

@compute @workgroup_size(CACHE_THREADS)
fn unpack(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let item = linear_group(id, size) * CACHE_THREADS + local;
    let quads = max(HEAD_QUADS, VALUE_QUADS);
    let quad = item % quads;
    let token = item / quads % problem.kv_len;
    let head = item / quads / problem.kv_len % cache.kv_heads;
    let sequence = item / quads / problem.kv_len / cache.kv_heads;
    if (sequence >= cache.sequences) {
        return;
    }
    var k = vec4(0.0);
    var v = vec4(0.0);
    if (token < cached_tokens(sequence)) {
        let row = cache_row(sequence, head, token);
        if (quad < HEAD_QUADS) {
            k = load_k(row, quad);
        }
        if (quad < VALUE_QUADS) {
            v = load_v(row, quad);
        }
    }
    let row = (sequence * cache.kv_heads + head) * problem.kv_len + token;
    for (var lane = 0u; lane < 4u; lane++) {
        let dim = 4u * quad + lane;
        if (dim < HEAD_DIM) {
            k_out[row * HEAD_DIM + dim] = k[lane];
        }
        if (dim < VALUE_DIM) {
            v_out[row * VALUE_DIM + dim] = v[lane];
        }
    }
}
