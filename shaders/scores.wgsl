// Scores of every query and key, stored: S = softcap(scale Q K^T) + bias, -inf where excluded.
//
// Workgroup: a tile of TILE_QUERIES queries and TILE_KEYS keys of one head.
// Thread:    (x, y): rows 4 y ..; keys x, x + THREADS_K, ..: a 4 x 4 fragment.
// Memory:    `q_tile` and `k_tile` hold DIM_QUADS of every row at a time.
// Grid:      key tiles, then query tiles, then heads, then batches.
// Twin:      cpu/naive.rs, scores()
//
// Proof: rows are clamped below q_len and kv_len, quads loaded only below HEAD_QUADS; the tiles'
// indices are below their lengths as row < TILE_QUERIES or TILE_KEYS and quad < DIM_QUADS. Stores
// and the loads of bias and mask test row and key. Loops rise by a constant to a bound fixed before
// the loop. Barriers are under uniform conditions only.

const DIM_STRIDE = DIM_QUADS | 1u;  // padded against bank conflicts

var<workgroup> q_tile: array<vec4<f32>, TILE_QUERIES * DIM_STRIDE>;
var<workgroup> k_tile: array<vec4<f32>, TILE_KEYS * DIM_STRIDE>;

// `query` and `key` are tokens; `sequence` is the query's sequence, `seen` what it sees of its keys.
fn put_score(sequence: Sequence, seen: vec2<u32>, head: u32, query: u32, key: u32, dot: f32) {
    if (query < problem.q_len && key < problem.kv_len) {
        let batch = sequence.batch;
        let bits = bias_bits(bias_row(batch, head, query), key);
        // wraps below the sequence's first key, to far beyond its last
        let j = key - sequence.first_key;
        let distance = i32(query - sequence.first_query) + sequence.shift - i32(j);
        let score = bitcast<u32>(final_score(dot, slope(head), distance, bits));
        let allowed = j >= seen.x && j < seen.y && bits != NEGATIVE_INFINITY
            && mask_allows(mask_row(batch, head, query), key);
        let row = row_start(problem.scores, batch, head, query);
        store_score(row + key, select(NEGATIVE_INFINITY, score, allowed));
    }
}

@compute @workgroup_size(THREADS_Q * THREADS_K)
fn scores(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let group = linear_group(id, size);
    if (group >= problem.groups) {
        return;
    }
    let key_tiles = (problem.kv_len + TILE_KEYS - 1u) / TILE_KEYS;
    let query_tiles = (problem.q_len + TILE_QUERIES - 1u) / TILE_QUERIES;
    let row_tile = group / key_tiles;
    let first_key = group % key_tiles * TILE_KEYS;
    let first_query = row_tile % query_tiles * TILE_QUERIES;
    let batch = row_tile / query_tiles / problem.q_heads;
    let head = row_tile / query_tiles % problem.q_heads;
    let kv = kv_head(head);
    let x = local % THREADS_K;
    let y = local / THREADS_K;

    // s_c: the scores of rows 4 y .. of key x + c THREADS_K
    var s0 = vec4(0.0);
    var s1 = vec4(0.0);
    var s2 = vec4(0.0);
    var s3 = vec4(0.0);
    for (var chunk = 0u; chunk < HEAD_QUADS; chunk += DIM_QUADS) {
        let quads = min(DIM_QUADS, HEAD_QUADS - chunk);
        workgroupBarrier();
        for (var at = local; at < TILE_QUERIES * DIM_QUADS; at += THREADS_Q * THREADS_K) {
            let quad = at % DIM_QUADS;
            let query = min(first_query + at / DIM_QUADS, problem.q_len - 1u);
            if (quad < quads) {
                let row = row_start(problem.q, batch, head, query);
                q_tile[at / DIM_QUADS * DIM_STRIDE + quad] = problem.scale * load_q(row, chunk + quad);
            }
        }
        for (var at = local; at < TILE_KEYS * DIM_QUADS; at += THREADS_Q * THREADS_K) {
            let quad = at % DIM_QUADS;
            let key = min(first_key + at / DIM_QUADS, problem.kv_len - 1u);
            if (quad < quads) {
                let row = k_row(batch, kv, key);
                k_tile[at / DIM_QUADS * DIM_STRIDE + quad] = load_k(row, chunk + quad);
            }
        }
        workgroupBarrier();
        for (var quad = 0u; quad < quads; quad++) {
            let a = q_tile[4u * y * DIM_STRIDE + quad];
            let b = q_tile[(4u * y + 1u) * DIM_STRIDE + quad];
            let c = q_tile[(4u * y + 2u) * DIM_STRIDE + quad];
            let d = q_tile[(4u * y + 3u) * DIM_STRIDE + quad];
            let k0 = k_tile[x * DIM_STRIDE + quad];
            let k1 = k_tile[(x + THREADS_K) * DIM_STRIDE + quad];
            let k2 = k_tile[(x + 2u * THREADS_K) * DIM_STRIDE + quad];
            let k3 = k_tile[(x + 3u * THREADS_K) * DIM_STRIDE + quad];
            s0 += vec4(dot(a, k0), dot(b, k0), dot(c, k0), dot(d, k0));
            s1 += vec4(dot(a, k1), dot(b, k1), dot(c, k1), dot(d, k1));
            s2 += vec4(dot(a, k2), dot(b, k2), dot(c, k2), dot(d, k2));
            s3 += vec4(dot(a, k3), dot(b, k3), dot(c, k3), dot(d, k3));
        }
    }
    for (var r = 0u; r < 4u; r++) {
        let query = first_query + 4u * y + r;
        let key = first_key + x;
        let sequence = sequence_of_row(batch, query);
        let seen = visible(sequence, query - sequence.first_query);
        put_score(sequence, seen, head, query, key, s0[r]);
        put_score(sequence, seen, head, query, key + THREADS_K, s1[r]);
        put_score(sequence, seen, head, query, key + 2u * THREADS_K, s2[r]);
        put_score(sequence, seen, head, query, key + 3u * THREADS_K, s3[r]);
    }
}
