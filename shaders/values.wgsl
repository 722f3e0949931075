// Weighted mix of the values: O = P V from stored weights, which are halved as long as they are summed:
// they may sum to a little more than 1.
//
// Workgroup: TILE_QUERIES rows and COLUMN_QUADS value quads of one head, the keys of one split.
// Thread:    (x, y): rows 4 y ..; value quads x, x + THREADS_K, ..
// Memory:    `p_tile` holds P / 2 [row / 4, key], `v_tile` V [key, quad].
// Grid:      one workgroup per place(); splits outermost.
// Twin:      cpu/naive.rs, values()
//
// Proof: query tokens are clamped below q_len, keys are loaded only below key_span's end <= keys of
// the sequence, whose tokens lie below kv_len, quads only below VALUE_QUADS; both tiles' indices are
// below their lengths as key < TILE_KEYS, y < THREADS_Q, quad < COLUMN_QUADS. put() tests its row and
// quad. Loops rise by a constant to a bound fixed before the loop. Barriers are under uniform
// conditions only.

var<workgroup> p_tile: array<vec4<f32>, THREADS_Q * TILE_KEYS>;
var<workgroup> v_tile: array<vec4<f32>, TILE_KEYS * COLUMN_QUADS>;

fn weight_at(here: Place, row: u32, key: u32) -> f32 {
    let token = min(here.sequence.first_query + here.row + row, problem.q_len - 1u);
    let start = row_start(problem.weights, here.sequence.batch, here.head, token);
    return bitcast<f32>(load_weight(start + here.sequence.first_key + key));
}

@compute @workgroup_size(THREADS_Q * THREADS_K)
fn values(
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

    // what a split adds up to: 0 tells `merge` that there is nothing
    var l = vec4(0.0);
    var o0: array<vec4<f32>, OUT_QUADS>;
    var o1: array<vec4<f32>, OUT_QUADS>;
    var o2: array<vec4<f32>, OUT_QUADS>;
    var o3: array<vec4<f32>, OUT_QUADS>;
    for (var first = span.x; first < span.y; first += TILE_KEYS) {
        workgroupBarrier();
        for (var at = local; at < TILE_KEYS * THREADS_Q; at += THREADS_Q * THREADS_K) {
            let key = at % TILE_KEYS;
            let rows = at / TILE_KEYS;
            var p = vec4(0.0);
            if (first + key < span.y) {
                p = 0.5 * vec4(
                    weight_at(here, 4u * rows, first + key),
                    weight_at(here, 4u * rows + 1u, first + key),
                    weight_at(here, 4u * rows + 2u, first + key),
                    weight_at(here, 4u * rows + 3u, first + key),
                );
            }
            p_tile[at] = p;
        }
        workgroupBarrier();
        for (var at = local; at < TILE_KEYS * COLUMN_QUADS; at += THREADS_Q * THREADS_K) {
            let j = first + at / COLUMN_QUADS;
            let quad = here.column + at % COLUMN_QUADS;
            var v = vec4(0.0);
            if (j < span.y && quad < VALUE_QUADS) {
                v = load_v(value_row(here, j), quad);
            }
            v_tile[at] = v;
        }
        workgroupBarrier();
        // O / 2 += P / 2 V
        for (var j = 0u; j < TILE_KEYS; j++) {
            let p = p_tile[y * TILE_KEYS + j];
            l += p;
            for (var c = 0u; c < OUT_QUADS; c++) {
                let v = v_tile[j * COLUMN_QUADS + c * THREADS_K + x];
                o0[c] += p.x * if_seen(v, p.x);
                o1[c] += p.y * if_seen(v, p.y);
                o2[c] += p.z * if_seen(v, p.z);
                o3[c] += p.w * if_seen(v, p.w);
            }
        }
    }
    for (var c = 0u; c < OUT_QUADS; c++) {
        let column = c * THREADS_K + x;
        put(here, 4u * y, column, o0[c], 0.0, l.x);
        put(here, 4u * y + 1u, column, o1[c], 0.0, l.y);
        put(here, 4u * y + 2u, column, o2[c], 0.0, l.z);
        put(here, 4u * y + 3u, column, o3[c], 0.0, l.w);
    }
}
