// Sequences: one a batch entry.

fn entry(batch: u32) -> Sequence {
    var s: Sequence;
    s.batch = batch;
    s.rows = problem.q_len;
    s.queries = min(min(lengths.query_count, problem.q_len), query_count(batch));
    s.keys = min(min(lengths.key_count, problem.kv_len), min(key_count(batch), held_keys(batch)));
    return with_band(s);
}

// The sequence that query row `row` belongs to.
fn sequence_of_row(batch: u32, row: u32) -> Sequence {
    return entry(batch);
}

// The sequence that query tile `tile` of a head belongs to.
fn sequence_of_tile(batch: u32, tile: u32) -> Sequence {
    return entry(batch);
}
