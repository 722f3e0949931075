// Sequences one after another in one batch entry. Sequence s owns the tokens cu[s] .. cu[s + 1]; what
// is left of the queries is a last one without keys. Bounds may come from the GPU: they are clamped,
// and one that falls makes an empty sequence.
//
// A sequence's first query tile is cu[s] / TILE_QUERIES + s: enough tiles lie between two of them,
// whatever the lengths, and a search finds the sequence of a tile.

fn query_bound(s: u32) -> u32 {
    return select(min(tables[problem.cu_seqlens_q + s], problem.q_len), 0u, s == 0u);
}

fn key_bound(s: u32) -> u32 {
    return min(tables[problem.cu_seqlens_kv + s], problem.kv_len);
}

fn numbered(s: u32) -> Sequence {
    var at: Sequence;
    at.first_query = query_bound(s);
    at.first_tile = at.first_query / TILE_QUERIES + s;
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

// The sequence that query row `row` belongs to.
fn sequence_of_row(batch: u32, row: u32) -> Sequence {
    var low = 0u;
    var past = problem.sequences + 1u;
    for (var step = 0u; step < 32u && past - low > 1u; step++) {
        let middle = (low + past) / 2u;
        if (query_bound(middle) <= row) {
            low = middle;
        } else {
            past = middle;
        }
    }
    return numbered(low);
}

// The sequence that query tile `tile` of a head belongs to.
fn sequence_of_tile(batch: u32, tile: u32) -> Sequence {
    var low = 0u;
    var past = problem.sequences + 1u;
    for (var step = 0u; step < 32u && past - low > 1u; step++) {
        let middle = (low + past) / 2u;
        if (query_bound(middle) / TILE_QUERIES + middle <= tile) {
            low = middle;
        } else {
            past = middle;
        }
    }
    return numbered(low);
}
