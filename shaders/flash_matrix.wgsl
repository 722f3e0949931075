// Fused attention on matrix units: one sweep over the keys with an online softmax.
//
//     S = scale Q K^T + bias            scores of a tile of keys
//     m' = max(m, rowmax S)             running maximum; only where it grows by more than SLACK
//     P = exp(S - m')                   unnormalised weights, 0 where excluded
//     l = exp(m - m') l + rowsum P      running sum
//     O = exp(m - m') O + P V           running output; O / l at the end
//
// Dao, "FlashAttention-2" (2023), algorithm 1. A maximum that is too low by less than SLACK costs no
// digits, and O, which no invocation can index, stays in its matrices.
//
// Workgroup: TILE_QUERIES rows of one kv head, and the keys of one split.
// Subgroup:  ROW_BLOCKS blocks of MATRIX rows of S and O. More subgroups than planned repeat the last.
// Thread:    in the softmax, keys part, part + ROW_THREADS, .. of one row.
// Memory:    matrix_tile.wgsl: Q, then K and V in `tile`; S or a part of O; P.
// Grid:      one workgroup per place(); splits outermost.
// Twin:      cpu/flash.rs, sweep()
//
// Proof (compiled without runtime checks). Loads: query tokens are clamped below q_len, key rows are
// loaded only below key_span's end, whose tokens lie below kv_len, quads only below HEAD_QUADS or
// VALUE_QUADS; key_score.wgsl clamps the tokens of bias and mask. Matrices: rows are below
// TILE_QUERIES or TILE_KEYS, since `subgroup` is clamped, and dims below HEAD_DIMS or VALUE_DIMS.
// Stores: put() tests its row and quad. Loops: all counters rise by a constant to a bound fixed before
// the loop. Barriers: in uniform control flow, as key_span() depends on workgroup, uniforms and tables
// only, and workgroupUniformLoad() tells all threads the same. Races: a barrier stands between the
// last read of a part of each array and the next write of it; repeated blocks write the same bits.

@compute @workgroup_size(MATRIX_THREADS)
fn flash_matrix(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
) {
    // The same for all threads, as validators see only of what comes out of workgroup memory.
    let group = linear_group(id, size);
    let here = place(min(group, problem.groups - 1u));
    if (local == 0u) {
        let idle = group >= problem.groups || is_empty_split(here);
        work = vec3(key_span(here), select(1u, 0u, idle));
    }
    let span = workgroupUniformLoad(&work);
    if (span.z == 0u) {
        return;
    }
    let own = min(subgroup, SUBGROUPS - 1u) * ROW_BLOCKS * MATRIX;
    let number = local / ROW_THREADS;
    let part = local % ROW_THREADS;
    let row = one_row(here, number);

    // Q, and zeros to begin every sum with
    fill_queries(here, local);
    if (local == 0u) {
        atomicStore(&grown, 0u);
        atomicStore(&wild_keys, 0u);
    }
    workgroupBarrier();
    let zero = coopLoadT<MatrixC>(&scores_tile[own * SCORE_STRIDE], SCORE_STRIDE);
    var q: array<MatrixA, ROW_BLOCKS * HEAD_BLOCKS>;
    var o: array<MatrixC, ROW_BLOCKS * VALUE_BLOCKS>;
    for (var r = 0u; r < ROW_BLOCKS; r++) {
        for (var c = 0u; c < HEAD_BLOCKS; c++) {
            let at = (own + r * MATRIX) * KEY_STRIDE + c * MATRIX;
            q[r * HEAD_BLOCKS + c] = coopLoadT<MatrixA>(&tile[at], KEY_STRIDE);
        }
        for (var c = 0u; c < VALUE_BLOCKS; c++) {
            o[r * VALUE_BLOCKS + c] = zero;
        }
    }
    var m = LOWEST;
    var l = 0.0;  // of this thread's keys only

    for (var first = span.x; first < span.y; first += TILE_KEYS) {
        // K and V; 0 past the last key
        workgroupBarrier();
        fill_keys(here, local, first, span.y);
        workgroupBarrier();

        // S = Q K^T
        for (var c = 0u; c < KEY_BLOCKS; c++) {
            var s: array<MatrixC, ROW_BLOCKS>;
            for (var r = 0u; r < ROW_BLOCKS; r++) {
                s[r] = zero;
            }
            for (var d = 0u; d < HEAD_BLOCKS; d++) {
                let k = coopLoad<MatrixB>(&tile[c * MATRIX * KEY_STRIDE + d * MATRIX], KEY_STRIDE);
                for (var r = 0u; r < ROW_BLOCKS; r++) {
                    s[r] = coopMultiplyAdd(q[r * HEAD_BLOCKS + d], k, s[r]);
                }
            }
            for (var r = 0u; r < ROW_BLOCKS; r++) {
                let at = (own + r * MATRIX) * SCORE_STRIDE + c * MATRIX;
                coopStoreT(s[r], &scores_tile[at], SCORE_STRIDE);
            }
        }
        workgroupBarrier();

        // m' = max(m, rowmax S), over the threads of the row
        var most = LOWEST;
        for (var j = part; j < TILE_KEYS; j += ROW_THREADS) {
            let at = number * SCORE_STRIDE + j;
            let s = key_score(here, row, first + j, span.y, problem.scale * scores_tile[at]);
            scores_tile[at] = s;
            most = max(most, s);
        }
        scores_tile[number * SCORE_STRIDE + TILE_KEYS + part] = most;
        workgroupBarrier();
        var next = m;
        for (var t = 0u; t < ROW_THREADS; t++) {
            next = max(next, scores_tile[number * SCORE_STRIDE + TILE_KEYS + t]);
        }
        let grows = next > m + SLACK;
        next = select(m, next, grows);
        if (grows) {
            atomicOr(&grown, 1u);
        }

        // P = exp(S - m'), l = exp(m - m') l + rowsum P
        let alpha = exp(m - next);
        m = next;
        l *= alpha;
        let wild = atomicLoad(&wild_keys);
        for (var j = part; j < TILE_KEYS; j += ROW_THREADS) {
            let s = scores_tile[number * SCORE_STRIDE + j];
            let p = select(exp(s - m), 0.0, s <= LOWEST);
            weights_tile[number * WEIGHT_STRIDE + j] = f16(p);
            l += p;
            // a row that sees a value that is not finite has no result
            if (HIDES_KEYS && s > LOWEST && ((wild >> j) & 1u) == 1u) {
                l = bitcast<f32>(0x7fc00000u | problem.zero);
            }
        }
        let rescale = workgroupUniformLoad(&grown);
        if (local == 0u) {
            atomicStore(&grown, 0u);
            atomicStore(&wild_keys, 0u);
        }

        // O = exp(m - m') O, KEY_BLOCKS blocks of dims at a time
        if (rescale != 0u) {
            for (var c = 0u; c < VALUE_BLOCKS; c += KEY_BLOCKS) {
                for (var i = 0u; i < min(KEY_BLOCKS, VALUE_BLOCKS - c); i++) {
                    for (var r = 0u; r < ROW_BLOCKS; r++) {
                        let at = (own + r * MATRIX) * SCORE_STRIDE + i * MATRIX;
                        coopStoreT(o[r * VALUE_BLOCKS + c + i], &scores_tile[at], SCORE_STRIDE);
                    }
                }
                workgroupBarrier();
                for (var j = part; j < TILE_KEYS; j += ROW_THREADS) {
                    scores_tile[number * SCORE_STRIDE + j] *= alpha;
                }
                workgroupBarrier();
                for (var i = 0u; i < min(KEY_BLOCKS, VALUE_BLOCKS - c); i++) {
                    for (var r = 0u; r < ROW_BLOCKS; r++) {
                        let at = (own + r * MATRIX) * SCORE_STRIDE + i * MATRIX;
                        o[r * VALUE_BLOCKS + c + i] =
                            coopLoadT<MatrixC>(&scores_tile[at], SCORE_STRIDE);
                    }
                }
                workgroupBarrier();
            }
        }

        // O += P V
        for (var c = 0u; c < KEY_BLOCKS; c++) {
            var p: array<MatrixA, ROW_BLOCKS>;
            for (var r = 0u; r < ROW_BLOCKS; r++) {
                let at = (own + r * MATRIX) * WEIGHT_STRIDE + c * MATRIX;
                p[r] = coopLoadT<MatrixA>(&weights_tile[at], WEIGHT_STRIDE);
            }
            for (var d = 0u; d < VALUE_BLOCKS; d++) {
                let at = FIRST_VALUE + d * MATRIX * VALUE_STRIDE + c * MATRIX;
                let v = coopLoad<MatrixB>(&tile[at], VALUE_STRIDE);
                for (var r = 0u; r < ROW_BLOCKS; r++) {
                    let x = r * VALUE_BLOCKS + d;
                    o[x] = coopMultiplyAdd(p[r], v, o[x]);
                }
            }
        }
    }

    // l of the whole row, and O from its matrices
    scores_tile[number * SCORE_STRIDE + TILE_KEYS + part] = l;
    for (var c = 0u; c < VALUE_BLOCKS; c += KEY_BLOCKS) {
        workgroupBarrier();
        for (var i = 0u; i < min(KEY_BLOCKS, VALUE_BLOCKS - c); i++) {
            for (var r = 0u; r < ROW_BLOCKS; r++) {
                let at = (own + r * MATRIX) * SCORE_STRIDE + i * MATRIX;
                coopStoreT(o[r * VALUE_BLOCKS + c + i], &scores_tile[at], SCORE_STRIDE);
            }
        }
        workgroupBarrier();
        var sum = 0.0;
        for (var t = 0u; t < ROW_THREADS; t++) {
            sum += scores_tile[number * SCORE_STRIDE + TILE_KEYS + t];
        }
        for (var quad = part; quad < TILE_KEYS / 4u; quad += ROW_THREADS) {
            let column = c * MATRIX / 4u + quad;
            if (column >= COLUMN_QUADS) {
                break;
            }
            let at = number * SCORE_STRIDE + 4u * quad;
            let x = vec4(
                scores_tile[at],
                scores_tile[at + 1u],
                scores_tile[at + 2u],
                scores_tile[at + 3u],
            );
            put(here, number, column, x, m, sum);
        }
    }
}
