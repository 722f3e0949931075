// Sequences: one a batch entry, all of the same length.

fn entry(batch: u32) -> Sequence {
    var s: Sequence;
    s.batch = batch;
    s.rows = problem.q_len;
    s.queries = min(lengths.query_count, problem.q_len);
    s.keys = min(lengths.key_count, problem.kv_len);
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
