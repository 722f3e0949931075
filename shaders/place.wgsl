// Which tile of the output, and which keys, a workgroup works on.

struct Place {
    group: u32,
    head: u32,
    query: u32,   // first query of the tile, in its sequence
    column: u32,  // first quad of the value dims
    split: u32,
    sequence: Sequence,
}

// Tiles run over value columns, then query tiles, then heads, then batches; splits are outermost.
fn place(group: u32) -> Place {
    let tile = problem.first_tile + group % problem.tiles;
    let row_tile = tile / COLUMN_TILES;
    let head = row_tile / problem.query_tiles;
    let query_tile = row_tile % problem.query_tiles;
    var here: Place;
    here.group = group;
    here.head = head % problem.q_heads;
    here.sequence = sequence_of_tile(head / problem.q_heads, query_tile);
    here.query = (query_tile - here.sequence.first_tile) * TILE_QUERIES;
    here.column = tile % COLUMN_TILES * COLUMN_QUADS;
    here.split = group / problem.tiles;
    return here;
}

// The row of K or V of key `j` of the sequence.
fn key_row(strides: Strides, here: Place, j: u32) -> u32 {
    return row_start(strides, here.sequence.batch, kv_head(here.head), here.sequence.first_key + j);
}

// Keys [x, y) that some query of the tile may see, x rounded down to a whole tile; x >= y if none.
fn key_span(here: Place) -> vec2<u32> {
    let split_begin = here.split * problem.split_keys;
    if (here.query >= here.sequence.queries || split_begin >= here.sequence.keys) {
        return vec2(0u);
    }
    let last = min(here.query + TILE_QUERIES, here.sequence.queries) - 1u;
    let begin = visible(here.sequence, here.query).x;
    let end = visible(here.sequence, last).y;
    return vec2(
        max(split_begin, begin / TILE_KEYS * TILE_KEYS),
        min(end, split_begin + problem.split_keys),
    );
}

// True if every query of the tile may see every key of [key, key + TILE_KEYS).
fn tile_is_whole(here: Place, key: u32, end: u32) -> bool {
    let last = min(here.query + TILE_QUERIES, here.sequence.queries) - 1u;
    return key + TILE_KEYS <= end
        && key >= visible(here.sequence, last).x
        && key + TILE_KEYS <= visible(here.sequence, here.query).y;
}
