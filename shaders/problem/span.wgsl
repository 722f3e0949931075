// Which keys a workgroup works on.

fn last_query(here: Place) -> u32 {
    return min(query_of(here, TILE_QUERIES - 1u), here.sequence.queries - 1u);
}

// True if the sequence ends before the split. The first split of every tile is never empty.
fn is_empty_split(here: Place) -> bool {
    return here.split > 0u && here.split * problem.split_keys >= here.sequence.keys;
}

// Keys [x, y) that some query of the tile may see, x rounded down to a whole tile; x >= y if none.
fn key_span(here: Place) -> vec2<u32> {
    let split_begin = here.split * problem.split_keys;
    if (query_of(here, 0u) >= here.sequence.queries || split_begin >= here.sequence.keys) {
        return vec2(0u);
    }
    let begin = visible(here.sequence, query_of(here, 0u)).x;
    let end = visible(here.sequence, last_query(here)).y;
    return vec2(
        max(split_begin, begin / TILE_KEYS * TILE_KEYS),
        min(end, split_begin + problem.split_keys),
    );
}

// Keys [x, y) below `end` that every query of the tile may see.
fn whole_span(here: Place, end: u32) -> vec2<u32> {
    let begin = visible(here.sequence, last_query(here)).x;
    return vec2(begin, min(end, visible(here.sequence, query_of(here, 0u)).y));
}

// True if every query of the tile may see every key of [key, key + TILE_KEYS).
fn tile_is_whole(here: Place, key: u32, end: u32) -> bool {
    let span = whole_span(here, end);
    return key >= span.x && key + TILE_KEYS <= span.y;
}
