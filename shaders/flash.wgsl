// Fused attention: one sweep over the keys with an online softmax, nothing of size q_len * kv_len.
//
//     S = scale Q K^T + bias            scores of a tile of keys
//     m' = max(m, rowmax S)             running maximum
//     P = unit exp(S - m')              unnormalised weights, 0 where excluded; unit: weight_unit()
//     l = exp(m - m') l + rowsum P      running sum
//     O = exp(m - m') O + P V           running output; O / l at the end
//
// Dao, "FlashAttention-2" (2023), algorithm 1.
//
// Workgroup: TILE_QUERIES = 4 THREADS_Q rows of one kv head, and the keys of one split.
// Thread:    (x, y): 4 rows 4 y ..; keys x, x + THREADS_K, ..; value quads x, x + THREADS_K, ..
// Memory:    flash_tile.wgsl: a chunk of K, then of V, in `tile`; P; a thread's maxima, then l.
// Grid:      one workgroup per place(); splits outermost.
// Twin:      cpu/flash.rs, sweep()
//
// Proof (compiled without runtime checks). Loads: query tokens are clamped below q_len, key rows
// are loaded only below key_span's end <= keys of the sequence, whose tokens lie below kv_len, quads
// only below HEAD_QUADS or VALUE_QUADS; fragment.wgsl clamps the tokens of bias and mask. `tile`: slot
// < TILE_QUADS, since kernel/tile.rs sizes it for both uses. `weights_tile`: key < TILE_KEYS, y < THREADS_Q;
// `row_parts`: x < THREADS_K. Stores: put() tests its row and quad. Loops: all counters rise by a
// constant to a bound fixed before the loop. Barriers: in uniform control flow, as key_span() depends
// on workgroup, uniforms and tables only, and verdict() on what all threads share. Races: a barrier
// stands between the last read of a part of `tile` and the next write of it. P is written behind the
// barrier that follows the dots, and read behind that of V; `row_parts` is read in between, so that
// whoever has passed the barrier of V may write it again.

@compute @workgroup_size(THREADS_Q * THREADS_K)
fn flash(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let group = linear_group(id, size);
    if (group >= problem.groups) {
        return;
    }
    let here = place(group);
    if (is_empty_split(here)) {
        return;
    }
    let span = key_span(here);
    let x = local % THREADS_K;
    let y = local / THREADS_K;
    let rows = four_rows(here, 4u * y);
    let q0 = row_start(problem.q, here.sequence.batch, rows.heads.x, rows.tokens.x);
    let q1 = row_start(problem.q, here.sequence.batch, rows.heads.y, rows.tokens.y);
    let q2 = row_start(problem.q, here.sequence.batch, rows.heads.z, rows.tokens.z);
    let q3 = row_start(problem.q, here.sequence.batch, rows.heads.w, rows.tokens.w);

    let unit = weight_unit(here);
    var m = vec4(LOWEST);
    var l = vec4(0.0);  // of this thread's keys only
    var o0: array<vec4<f32>, OUT_QUADS>;
    var o1: array<vec4<f32>, OUT_QUADS>;
    var o2: array<vec4<f32>, OUT_QUADS>;
    var o3: array<vec4<f32>, OUT_QUADS>;

    for (var first = span.x; first < span.y; first += TILE_KEYS) {
        // which keys count: a tile without any is skipped, one of which all count is not tested
        let key = first + x;
        let in_band = tile_is_whole(here, first, span.y);
        var seen = 0xffffu;
        if (HAS_BIAS || HAS_MASK || !in_band) {
            seen = four_seen(here, rows, key, span.y)
                | (four_seen(here, rows, key + THREADS_K, span.y) << 4u)
                | (four_seen(here, rows, key + 2u * THREADS_K, span.y) << 8u)
                | (four_seen(here, rows, key + 3u * THREADS_K, span.y) << 12u);
        }
        let decision = verdict(local, in_band, seen);
        if (decision == NONE_SEEN) {
            continue;
        }
        let whole = decision == ALL_SEEN;

        // S = scale Q K^T, DIM_QUADS of the dot product at a time
        var s0 = vec4(0.0);
        var s1 = vec4(0.0);
        var s2 = vec4(0.0);
        var s3 = vec4(0.0);
        for (var chunk = 0u; chunk < HEAD_QUADS; chunk += DIM_QUADS) {
            let quads = min(DIM_QUADS, HEAD_QUADS - chunk);
            workgroupBarrier();
            fill_keys(here, local, first, span.y, chunk);
            workgroupBarrier();
            for (var begin = 0u; begin < quads + problem.zero; begin += QUAD_STEP) {
                for (var step = 0u; step < QUAD_STEP; step++) {
                    let quad = begin + step;
                    let a = load_q(q0, chunk + quad);
                    let b = load_q(q1, chunk + quad);
                    let c = load_q(q2, chunk + quad);
                    let d = load_q(q3, chunk + quad);
                    let k0 = from_tile(tile[x * DIM_STRIDE + quad]);
                    let k1 = from_tile(tile[(x + THREADS_K) * DIM_STRIDE + quad]);
                    let k2 = from_tile(tile[(x + 2u * THREADS_K) * DIM_STRIDE + quad]);
                    let k3 = from_tile(tile[(x + 3u * THREADS_K) * DIM_STRIDE + quad]);
                    s0 = add_dots(s0, a, b, c, d, k0);
                    s1 = add_dots(s1, a, b, c, d, k1);
                    s2 = add_dots(s2, a, b, c, d, k2);
                    s3 = add_dots(s3, a, b, c, d, k3);
                }
            }
        }
        s0 = four_scores(here, rows, key, s0);
        s1 = four_scores(here, rows, key + THREADS_K, s1);
        s2 = four_scores(here, rows, key + 2u * THREADS_K, s2);
        s3 = four_scores(here, rows, key + 3u * THREADS_K, s3);
        if (!whole) {
            s0 = hidden(s0, seen);
            s1 = hidden(s1, seen >> 4u);
            s2 = hidden(s2, seen >> 8u);
            s3 = hidden(s3, seen >> 12u);
        }

        // m' = max(m, rowmax S), over the threads that share the rows
        row_parts[local] = max(max(s0, s1), max(s2, s3));
        workgroupBarrier();
        var next = m;
        for (var t = 0u; t < THREADS_K; t++) {
            next = max(next, row_parts[y * THREADS_K + t]);
        }

        // P = unit exp(S - m')
        let shift = or_zero(next);
        let p0 = unit * exp(s0 - shift);
        let p1 = unit * exp(s1 - shift);
        let p2 = unit * exp(s2 - shift);
        let p3 = unit * exp(s3 - shift);
        weights_tile[y * TILE_KEYS + x] = p0;
        weights_tile[y * TILE_KEYS + x + THREADS_K] = p1;
        weights_tile[y * TILE_KEYS + x + 2u * THREADS_K] = p2;
        weights_tile[y * TILE_KEYS + x + 3u * THREADS_K] = p3;

        // l = exp(m - m') l + rowsum P
        let alpha = exp(m - next);
        l = l * alpha + (((p0 + p1) + p2) + p3);
        m = next;

        // O = exp(m - m') O + P V, KEY_CHUNK keys at a time
        for (var c = 0u; c < OUT_QUADS; c++) {
            o0[c] *= alpha.x;
            o1[c] *= alpha.y;
            o2[c] *= alpha.z;
            o3[c] *= alpha.w;
        }
        for (var chunk = 0u; chunk < TILE_KEYS; chunk += KEY_CHUNK) {
            if (chunk > 0u) {
                workgroupBarrier();
            }
            fill_values(here, local, first + chunk, span.y, whole);
            workgroupBarrier();
            if (atomicLoad(&not_finite) == 0u) {
                for (var begin = 0u; begin < KEY_CHUNK + problem.zero; begin += KEY_STEP) {
                    for (var step = 0u; step < KEY_STEP; step++) {
                        let j = begin + step;
                        let p = weights_tile[y * TILE_KEYS + chunk + j];
                        for (var c = 0u; c < OUT_QUADS; c++) {
                            let v = from_tile(tile[j * COLUMN_QUADS + c * THREADS_K + x]);
                            o0[c] += p.x * v;
                            o1[c] += p.y * v;
                            o2[c] += p.z * v;
                            o3[c] += p.w * v;
                        }
                    }
                }
            } else {
                for (var j = 0u; j < KEY_CHUNK + problem.zero; j++) {
                    let p = weights_tile[y * TILE_KEYS + chunk + j];
                    for (var c = 0u; c < OUT_QUADS; c++) {
                        let v = from_tile(tile[j * COLUMN_QUADS + c * THREADS_K + x]);
                        o0[c] += p.x * if_seen(v, p.x);
                        o1[c] += p.y * if_seen(v, p.y);
                        o2[c] += p.z * if_seen(v, p.z);
                        o3[c] += p.w * if_seen(v, p.w);
                    }
                }
            }
        }
    }

    // l of the whole row, summed in the order of x
    row_parts[local] = l;
    workgroupBarrier();
    var sum = vec4(0.0);
    for (var t = 0u; t < THREADS_K; t++) {
        sum += row_parts[y * THREADS_K + t];
    }
    for (var c = 0u; c < OUT_QUADS; c++) {
        let column = c * THREADS_K + x;
        put(here, 4u * y, column, o0[c], m.x, sum.x);
        put(here, 4u * y + 1u, column, o1[c], m.y, sum.y);
        put(here, 4u * y + 2u, column, o2[c], m.z, sum.z);
        put(here, 4u * y + 3u, column, o3[c], m.w, sum.w);
    }
}
