// Attention over all keys from partial results over parts of them. O is summed in halves: its weights may
// come to a little more than 1.
//
//     m = max over parts of LSE_n
//     l = sum of exp(LSE_n - m)              LSE = m + ln(l)
//     o = sum of exp(LSE_n - m) / l o_n      a sink joins l after the LSE
//
// Workgroup: MERGE_ROWS rows of ROW_THREADS threads each.
// Thread:    quads lane, lane + ROW_THREADS, .. of its row.
// Memory:    none shared.
// Grid:      rows: queries, then heads, then batches.
// Twin:      cpu/merge.rs, merge()
//
// Proof (compiled without runtime checks). Row, part and quad are tested against the counts whose
// extents `MergePlan::bind` checks; dims are clamped to the row. Loops rise by a constant to a bound
// fixed before the loop. The barrier is outside of all conditions but one on the workgroup.
// What is read may be what is written (held, in place), but only row by row: written rows share no
// word with other rows or other parts (Merge::validate, and even strides of 16-bit rows). A quad is
// one thread's, which reads all it needs of it before it writes it. A row's LSE is read by the
// threads of one workgroup, all before the barrier, and written after it.

const INVOCATIONS = MERGE_ROWS * ROW_THREADS;

// exp(LSE_n - m), 0 for an empty part. The difference may pass f32's range.
fn state_weight(bits: u32, m: f32) -> f32 {
    return select(exp(max(bitcast<f32>(bits) - m, -200.0)), 0.0, bits == NEGATIVE_INFINITY);
}

@compute @workgroup_size(INVOCATIONS)
fn merge_states(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let group = linear_group(id, size);
    if (group >= problem.groups) {
        return;
    }
    let number = group * MERGE_ROWS + local / ROW_THREADS;
    let lane = local % ROW_THREADS;
    let exists = number < problem.rows;
    let head = number / problem.q_len;
    let row = Row(head / problem.q_heads, head % problem.q_heads, number % problem.q_len);
    let count = select(0u, state_count(), exists);

    // m = max LSE_n
    var m = LOWEST;
    for (var n = 0u; n < count; n++) {
        let bits = state_lse(n, row);
        m = max(m, select(bitcast<f32>(bits), LOWEST, bits == NEGATIVE_INFINITY));
    }

    // l = sum of exp(LSE_n - m)
    var l = 0.0;
    for (var n = 0u; n < count; n++) {
        l += state_weight(state_lse(n, row), m);
    }

    // half of 1 / l, or with a sink exp(m - m') / (exp(m - m') l + exp(sink - m')), where m' = max(m, sink)
    var share = 0.0;
    if (l != 0.0) {
        share = 0.5 / l;
        if (HAS_SINKS) {
            let logit = sink(row.head);
            let most = max(m, logit);
            let alpha = exp(max(m - most, -200.0));
            let p = select(exp(max(logit - most, -200.0)), 0.0, logit <= LOWEST);
            share = 0.5 * alpha / (alpha * l + p);
        }
    }

    // o = sum of exp(LSE_n - m) / l o_n, without the empty parts, whatever they hold
    let quads = select(0u, VALUE_QUADS, exists);
    for (var quad = lane; quad < quads; quad += ROW_THREADS) {
        let dims = min(4u * quad + vec4(0u, 1u, 2u, 3u), vec4(VALUE_DIM - 1u));
        var o = vec4(0.0);
        for (var n = 0u; n < count; n++) {
            let bits = state_lse(n, row);
            if (bits != NEGATIVE_INFINITY) {
                o += (state_weight(bits, m) * share) * state_quad(n, row, dims);
            }
        }
        store_o(row_start(problem.o, row.batch, row.head, row.token), quad, doubled(o));
    }

    storageBarrier();
    if (exists && lane == 0u) {
        let bits = select(bitcast<u32>(m + log(l)), NEGATIVE_INFINITY, l == 0.0);
        store_lse(row.batch, row.head, row.token, bits);
    }
}
