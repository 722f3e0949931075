// Row softmax of stored scores, and LSE.
//
//     m = max over the allowed keys of s_j
//     l = sum of exp(s_j - m)
//     p_j = exp(s_j - m) / l            LSE = m + ln(l); a sink joins l after the LSE
//
// Workgroup: one row of scores.
// Thread:    keys local, local + SOFTMAX_THREADS, .., four a trip.
// Memory:    `partials` holds every thread's (m, l), merged by halves.
// Grid:      one workgroup per query row: queries, then heads, then batches.
// Twin:      cpu/naive.rs, softmax()
//
// Proof: keys are tested against kv_len; partials' index is below SOFTMAX_THREADS. The loops over
// keys rise by a constant to kv_len; `half` halves from a constant to 0. Barriers are under
// uniform conditions only.

var<workgroup> partials: array<vec2<f32>, SOFTMAX_THREADS>;

// The score of a key, LOWEST if it is excluded or does not exist.
fn score_or_lowest(row: u32, key: u32) -> f32 {
    var bits = NEGATIVE_INFINITY;
    if (key < problem.kv_len) {
        bits = load_score(row + key);
    }
    return select(bitcast<f32>(bits), LOWEST, bits == NEGATIVE_INFINITY);
}

fn four_keys(row: u32, key: u32) -> vec4<f32> {
    return vec4(
        score_or_lowest(row, key),
        score_or_lowest(row, key + SOFTMAX_THREADS),
        score_or_lowest(row, key + 2u * SOFTMAX_THREADS),
        score_or_lowest(row, key + 3u * SOFTMAX_THREADS),
    );
}

fn put_weight(row: u32, key: u32, p: f32) {
    if (key < problem.kv_len) {
        store_weight(row + key, bitcast<u32>(p));
    }
}

@compute @workgroup_size(SOFTMAX_THREADS)
fn softmax(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let group = linear_group(id, size);
    if (group >= problem.groups) {
        return;
    }
    let sequence = group / problem.q_len;
    let query = group % problem.q_len;
    let batch = sequence / problem.q_heads;
    let head = sequence % problem.q_heads;
    let row = row_start(problem.scores, batch, head, query);

    // m = max s_j, l = sum of exp(s_j - m), over this thread's keys
    var m = LOWEST;
    var l = 0.0;
    for (var key = local; key < problem.kv_len; key += 4u * SOFTMAX_THREADS) {
        let s = four_keys(row, key);
        let next = max(m, max(max(s.x, s.y), max(s.z, s.w)));
        let p = exp_or_zero(s, vec4(next));
        l = l * exp(m - next) + (((p.x + p.y) + p.z) + p.w);
        m = next;
    }
    partials[local] = vec2(m, l);

    // the same over all threads
    for (var half = SOFTMAX_THREADS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (local < half) {
            let a = partials[local];
            let b = partials[local + half];
            let next = max(a.x, b.x);
            partials[local] = vec2(next, a.y * exp(a.x - next) + b.y * exp(b.x - next));
        }
    }
    workgroupBarrier();
    m = partials[0].x;
    l = partials[0].y;

    // p_j = exp(s_j - m) / l
    var most = m;
    var denominator = select(l, 1.0, l == 0.0);
    if (HAS_SINKS) {
        let logit = sink(head);
        most = max(m, logit);
        denominator = l * exp(m - most) + exp(logit - most);
    }
    let weights_row = row_start(problem.weights, batch, head, query);
    for (var key = local; key < problem.kv_len; key += 4u * SOFTMAX_THREADS) {
        let p = exp_or_zero(four_keys(row, key), vec4(most)) / denominator;
        put_weight(weights_row, key, p.x);
        put_weight(weights_row, key + SOFTMAX_THREADS, p.y);
        put_weight(weights_row, key + 2u * SOFTMAX_THREADS, p.z);
        put_weight(weights_row, key + 3u * SOFTMAX_THREADS, p.w);
    }
    if (local == 0u) {
        let lse = select(bitcast<u32>(m + log(l)), NEGATIVE_INFINITY, l == 0.0);
        store_lse(batch, head, query, lse);
    }
}
