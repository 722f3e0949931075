// Which tile of the output, and which keys, a workgroup works on.

struct Place {
    group: u32,
    head: u32,    // first query head of those that ride together
    kv_head: u32,
    row: u32,     // first row of the tile, in its sequence
    column: u32,  // first quad of the value dims
    split: u32,
    sequence: Sequence,
}

// Rows: one query of each head that rides together, then the next query. Tiles run over value
// columns, then rows, then heads, then batches; splits are outermost.
fn place(group: u32) -> Place {
    let tile = problem.first_tile + group % problem.tiles;
    let row_tile = tile / COLUMN_TILES;
    let heads = row_tile / problem.query_tiles;
    let query_tile = row_tile % problem.query_tiles;
    let head_groups = problem.q_heads / problem.row_group;
    var here: Place;
    here.group = group;
    here.head = heads % head_groups * problem.row_group;
    here.kv_head = kv_head(here.head);
    here.sequence = sequence_of_tile(heads / head_groups, query_tile);
    here.row = (query_tile - here.sequence.first_tile) * TILE_QUERIES;
    here.column = tile % COLUMN_TILES * COLUMN_QUADS;
    here.split = group / problem.tiles;
    return here;
}

// The query, counted in its sequence, and the head of a row of the tile.
fn query_of(here: Place, row: u32) -> u32 {
    return (here.row + row) / problem.row_group;
}

fn head_of(here: Place, row: u32) -> u32 {
    return here.head + (here.row + row) % problem.row_group;
}

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
