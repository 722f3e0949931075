// Which tile of the output, and which keys, a workgroup works on.

struct Place {
    group: u32,
    batch: u32,
    head: u32,
    query: u32,   // first query token of the tile
    column: u32,  // first quad of the value dims
    split: u32,
}

// Tiles run over value columns, then query tiles, then heads, then batches; splits are outermost.
fn place(group: u32) -> Place {
    let tile = problem.first_tile + group % problem.tiles;
    let row_tile = tile / COLUMN_TILES;
    let sequence = row_tile / problem.query_tiles;
    var here: Place;
    here.group = group;
    here.batch = sequence / problem.q_heads;
    here.head = sequence % problem.q_heads;
    here.query = row_tile % problem.query_tiles * TILE_QUERIES;
    here.column = tile % COLUMN_TILES * COLUMN_QUADS;
    here.split = group / problem.tiles;
    return here;
}

// Keys [x, y) that some query of the tile may see, x rounded down to a whole tile; x >= y if none.
fn key_span(here: Place) -> vec2<u32> {
    let queries = query_count(here.batch);
    let keys = key_count(here.batch);
    let split_begin = here.split * problem.split_keys;
    if (here.query >= queries || split_begin >= keys) {
        return vec2(0u);
    }
    let last = min(here.query + TILE_QUERIES, queries) - 1u;
    let low = max(i32(here.query) + band_low(here.batch), 0);
    let high = max(i32(last) + band_high(here.batch) + 1, 0);
    let begin = max(split_begin, u32(low) / TILE_KEYS * TILE_KEYS);
    let end = min(u32(high), min(keys, split_begin + problem.split_keys));
    return vec2(begin, end);
}

// True if every query of the tile may see every key of [key, key + TILE_KEYS).
fn tile_is_whole(here: Place, key: u32, end: u32) -> bool {
    let last = min(here.query + TILE_QUERIES, query_count(here.batch)) - 1u;
    return key + TILE_KEYS <= end
        && i32(key) >= i32(last) + band_low(here.batch)
        && i32(key + TILE_KEYS) <= i32(here.query) + band_high(here.batch) + 1;
}
