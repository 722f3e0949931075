// The score of one key for one row.

// A row of a tile, and what it may see.
struct Row {
    i: u32,      // query of the sequence
    token: u32,  // the same in the operands
    head: u32,
    begin: u32,  // keys [begin, end)
    end: u32,
}

fn one_row(here: Place, number: u32) -> Row {
    var row: Row;
    row.i = query_of(here, number);
    row.head = head_of(here, number);
    row.token = min(here.sequence.first_query + row.i, problem.q_len - 1u);
    let seen = visible(here.sequence, row.i);
    row.begin = seen.x;
    row.end = seen.y;
    return row;
}

// LOWEST where the row does not see the key, by lengths, band, mask and bias.
fn key_score(here: Place, row: Row, key: u32, end: u32, dot: f32) -> f32 {
    var seen = key >= row.begin && key < min(row.end, end);
    if (HAS_MASK) {
        let token = min(here.sequence.first_key + key, problem.kv_len - 1u);
        seen = seen && mask_allows(mask_row(here.sequence.batch, row.head, row.token), token);
    }
    return score_if_seen(here, row, key, seen, dot);
}

// LOWEST if not seen, or hidden by the bias.
fn score_if_seen(here: Place, row: Row, key: u32, seen: bool, dot: f32) -> f32 {
    var shown = seen;
    var bias = 0u;
    if (HAS_BIAS) {
        let token = min(here.sequence.first_key + key, problem.kv_len - 1u);
        bias = bias_bits(bias_row(here.sequence.batch, row.head, row.token), token);
        shown = shown && bias != NEGATIVE_INFINITY;
    }
    let distance = i32(row.i) + here.sequence.shift - i32(key);
    return select(LOWEST, final_score(dot, slope(row.head), distance, bias), shown);
}
