// Fused attention of few rows: each thread sweeps keys of its own with an online softmax, without a
// word to the others, and all merge at the end.
//
//     s = scale q . k                   scores of four keys
//     m' = max(m, s)                    running maximum of the thread's keys
//     p = unit exp(s - m')              unnormalised weights, 0 where excluded; unit: weight_unit()
//     l = exp(m - m') l + sum p         running sum
//     o = exp(m - m') o + p v           running output
//
// Dao et al., "Flash-Decoding for long-context inference" (2023), with a thread for a split.
//
// Workgroup: TILE_QUERIES rows of one kv head, and the keys of one split.
// Thread:    keys 4 x .. 4 x + 3 of each TILE_KEYS = 4 THREADS_K, for all rows.
// Memory:    `lane_o` holds 8 quads of each thread's output, `lane_m` and `lane_l` the rest.
// Grid:      one workgroup per place(); splits outermost.
// Twin:      cpu/flash.rs, sweep()
//
// Proof (compiled without runtime checks). Loads: query tokens are clamped below q_len, keys below
// key_span's end <= keys of the sequence, whose tokens lie below kv_len; quads are below HEAD_QUADS
// or VALUE_QUADS; key_score.wgsl clamps the tokens of bias and mask. `lane_*`: thread < THREADS_K,
// quad < 8. Stores: put() tests its row and quad. Loops: all counters rise by a constant to a bound
// fixed before the loop. Barriers: in uniform control flow, as only workgroup, uniforms and tables
// decide on the loops around them.

const LANE_QUADS = 8u;

var<workgroup> lane_m: array<f32, THREADS_K>;
var<workgroup> lane_l: array<f32, THREADS_K>;
var<workgroup> lane_o: array<vec4<f32>, THREADS_K * LANE_QUADS>;

@compute @workgroup_size(THREADS_K)
fn decode(
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
    let unit = weight_unit(here);
    var rows: array<Row, TILE_QUERIES>;
    var q: array<array<vec4<f32>, HEAD_QUADS>, TILE_QUERIES>;
    var o: array<array<vec4<f32>, VALUE_QUADS>, TILE_QUERIES>;
    var m: array<f32, TILE_QUERIES>;
    var l: array<f32, TILE_QUERIES>;
    for (var r = 0u; r < TILE_QUERIES; r++) {
        rows[r] = one_row(here, r);
        m[r] = LOWEST;
        let start = row_start(problem.q, here.sequence.batch, rows[r].head, rows[r].token);
        for (var c = 0u; c < HEAD_QUADS; c++) {
            q[r][c] = problem.scale * load_q(start, c);
        }
    }

    // Software adapters run the body of a loop once more than its trips unless it ends behind it.
    var first = span.x;
    if (first < span.y) {
        loop {
            let key = first + 4u * local;
            let last = span.y - 1u;
            let keys = min(vec4(key) + vec4(0u, 1u, 2u, 3u), vec4(last));
            let k_rows = four_key_rows(here, keys);

            // s = scale q . k
            var s: array<vec4<f32>, TILE_QUERIES>;
            for (var c = 0u; c < HEAD_QUADS; c++) {
                let k0 = raw_k(k_rows.x, c);
                let k1 = raw_k(k_rows.y, c);
                let k2 = raw_k(k_rows.z, c);
                let k3 = raw_k(k_rows.w, c);
                for (var r = 0u; r < TILE_QUERIES; r++) {
                    let x = q[r][c];
                    s[r] += vec4(dot(x, k0), dot(x, k1), dot(x, k2), dot(x, k3));
                }
            }
            let scales = vec4(
                k_scale(k_rows.x),
                k_scale(k_rows.y),
                k_scale(k_rows.z),
                k_scale(k_rows.w),
            );

            // p = unit exp(s - m'), l = exp(m - m') l + sum p
            var p: array<vec4<f32>, TILE_QUERIES>;
            var alpha: array<f32, TILE_QUERIES>;
            for (var r = 0u; r < TILE_QUERIES; r++) {
                let scaled = scales * s[r];
                let final_s = vec4(
                    key_score(here, rows[r], key, span.y, scaled.x),
                    key_score(here, rows[r], key + 1u, span.y, scaled.y),
                    key_score(here, rows[r], key + 2u, span.y, scaled.z),
                    key_score(here, rows[r], key + 3u, span.y, scaled.w),
                );
                let next = max(m[r], max(max(final_s.x, final_s.y), max(final_s.z, final_s.w)));
                let weights = exp_or_zero(final_s, vec4(next));
                alpha[r] = exp(m[r] - next);
                l[r] = l[r] * alpha[r] + unit * ((weights.x + weights.y) + (weights.z + weights.w));
                m[r] = next;
                p[r] = unit * weights;
            }

            // o = exp(m - m') o + p v
            let v_rows = four_value_rows(here, keys, k_rows);
            let v_scales = vec4(
                v_scale(v_rows.x),
                v_scale(v_rows.y),
                v_scale(v_rows.z),
                v_scale(v_rows.w),
            );
            for (var c = 0u; c < VALUE_QUADS; c++) {
                let v0 = v_scales.x * raw_v(v_rows.x, c);
                let v1 = v_scales.y * raw_v(v_rows.y, c);
                let v2 = v_scales.z * raw_v(v_rows.z, c);
                let v3 = v_scales.w * raw_v(v_rows.w, c);
                for (var r = 0u; r < TILE_QUERIES; r++) {
                    let w = p[r];
                    let pair = w.x * if_seen(v0, w.x) + w.y * if_seen(v1, w.y);
                    let other = w.z * if_seen(v2, w.z) + w.w * if_seen(v3, w.w);
                    o[r][c] = alpha[r] * o[r][c] + (pair + other);
                }
            }
            continuing {
                first += TILE_KEYS;
                break if first >= span.y;
            }
        }
    }

    // the threads' keys together, in the order of x
    for (var r = 0u; r < TILE_QUERIES; r++) {
        workgroupBarrier();
        lane_m[local] = m[r];
        workgroupBarrier();
        var most = LOWEST;
        for (var t = 0u; t < THREADS_K; t++) {
            most = max(most, lane_m[t]);
        }
        let share = exp(m[r] - most);
        lane_l[local] = share * l[r];
        for (var chunk = 0u; chunk < VALUE_QUADS; chunk += LANE_QUADS) {
            for (var c = 0u; c < min(LANE_QUADS, VALUE_QUADS - chunk); c++) {
                lane_o[local * LANE_QUADS + c] = share * o[r][chunk + c];
            }
            workgroupBarrier();
            for (var c = local; c < min(LANE_QUADS, VALUE_QUADS - chunk); c += THREADS_K) {
                var sum = vec4(0.0);
                var whole = 0.0;
                for (var t = 0u; t < THREADS_K; t++) {
                    sum += lane_o[t * LANE_QUADS + c];
                    whole += lane_l[t];
                }
                put(here, r, chunk + c, sum, most, whole);
            }
            workgroupBarrier();
        }
    }
}
