// Which tile of the output a workgroup works on, and whose rows.

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
