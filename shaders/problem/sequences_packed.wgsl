// Sequences one after another in one batch entry. Sequence s owns the tokens cu[s] .. cu[s + 1]; what
// is left of the queries is a last one without keys. Bounds may come from the GPU: they are clamped,
// and one that falls makes an empty sequence.

fn query_bound(s: u32) -> u32 {
    return select(min(tables[problem.cu_seqlens_q + s], problem.q_len), 0u, s == 0u);
}

fn key_bound(s: u32) -> u32 {
    return min(tables[problem.cu_seqlens_kv + s], problem.kv_len);
}

// Enough tiles lie between the first ones of two sequences, whatever the lengths.
fn first_tile(s: u32, first_query: u32) -> u32 {
    return first_query / TILE_QUERIES + s;
}

fn numbered(s: u32) -> Sequence {
    var at: Sequence;
    at.first_query = query_bound(s);
    at.first_tile = first_tile(s, at.first_query);
    if (s < problem.sequences) {
        at.rows = max(query_bound(s + 1u), at.first_query) - at.first_query;
        at.queries = at.rows;
        at.first_key = key_bound(s);
        at.keys = max(key_bound(s + 1u), at.first_key) - at.first_key;
    } else {
        at.rows = problem.q_len - at.first_query;
    }
    return with_band(at);
}

// The last sequence that begins at or before query row `at`, or query tile `at` of a head.
fn sequence_at(at: u32, by_tile: bool) -> Sequence {
    var low = 0u;
    var past = problem.sequences + 1u;
    for (var step = 0u; step < 32u && past - low > 1u; step++) {
        let middle = (low + past) / 2u;
        let row = query_bound(middle);
        if (select(row, first_tile(middle, row), by_tile) <= at) {
            low = middle;
        } else {
            past = middle;
        }
    }
    return numbered(low);
}

// The sequence that query row `row` belongs to.
fn sequence_of_row(batch: u32, row: u32) -> Sequence {
    return sequence_at(row, false);
}

// The sequence that query tile `tile` of a head belongs to.
fn sequence_of_tile(batch: u32, tile: u32) -> Sequence {
    return sequence_at(tile, true);
}
