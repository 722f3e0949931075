// A thread's fragment of a tile's scores: keys `key`, key + THREADS_K, .. of its four rows.

// Whose rows these are, and what each may see.
struct Rows {
    i: vec4<u32>,       // queries of the sequence
    heads: vec4<u32>,
    tokens: vec4<u32>,  // the same in the operands
    begin: vec4<u32>,   // keys [begin, end)
    end: vec4<u32>,
}

fn four_rows(here: Place, first: u32) -> Rows {
    var rows: Rows;
    let numbers = vec4(here.row + first) + vec4(0u, 1u, 2u, 3u);
    rows.i = numbers / problem.row_group;
    rows.heads = here.head + numbers % problem.row_group;
    rows.tokens = min(vec4(here.sequence.first_query) + rows.i, vec4(problem.q_len - 1u));
    let a = visible(here.sequence, rows.i.x);
    let b = visible(here.sequence, rows.i.y);
    let c = visible(here.sequence, rows.i.z);
    let d = visible(here.sequence, rows.i.w);
    rows.begin = vec4(a.x, b.x, c.x, d.x);
    rows.end = vec4(a.y, b.y, c.y, d.y);
    return rows;
}

// The bias bits of one key for four rows.
fn four_biases(here: Place, rows: Rows, key: u32) -> vec4<u32> {
    var bits = vec4(0u);
    if (HAS_BIAS) {
        let token = min(here.sequence.first_key + key, problem.kv_len - 1u);
        for (var r = 0u; r < 4u; r++) {
            bits[r] = bias_bits(bias_row(here.sequence.batch, rows.heads[r], rows.tokens[r]), token);
        }
    }
    return bits;
}

// Bit r: row r sees the key, by lengths, band, mask and bias.
fn four_seen(here: Place, rows: Rows, key: u32, end: u32) -> u32 {
    var seen = (vec4(key) >= rows.begin) & (vec4(key) < min(rows.end, vec4(end)));
    if (HAS_BIAS) {
        // Loaded again for the scores: otherwise it would take registers until then.
        let biases = four_biases(here, rows, key + problem.zero);
        seen = seen & (biases != vec4(NEGATIVE_INFINITY));
    }
    if (HAS_MASK) {
        let token = min(here.sequence.first_key + key, problem.kv_len - 1u);
        for (var r = 0u; r < 4u; r++) {
            let row = mask_row(here.sequence.batch, rows.heads[r], rows.tokens[r]);
            seen[r] = seen[r] && mask_allows(row, token);
        }
    }
    let bits = select(vec4(0u), vec4(1u, 2u, 4u, 8u), seen);
    return bits.x | bits.y | bits.z | bits.w;
}

// The scores of one key for four rows, whether they see it or not.
fn four_scores(here: Place, rows: Rows, key: u32, dots: vec4<f32>) -> vec4<f32> {
    let biases = four_biases(here, rows, key);
    var s = from_dots(dots);
    for (var r = 0u; r < 4u; r++) {
        let steepness = slope(rows.heads[r]);
        let distance = i32(rows.i[r]) + here.sequence.shift - i32(key);
        s[r] = final_score(s[r], steepness, distance, biases[r]);
    }
    return s;
}

// LOWEST where a row does not see the key.
fn hidden(s: vec4<f32>, seen: u32) -> vec4<f32> {
    let bits = vec4(seen) & vec4(1u, 2u, 4u, 8u);
    return select(s, vec4(LOWEST), bits == vec4(0u));
}

// What exp() subtracts: m, or 0 in a row that has seen no key yet, so that LOWEST weighs 0.
fn or_zero(m: vec4<f32>) -> vec4<f32> {
    return select(m, vec4(0.0), m == vec4(LOWEST));
}
