// Rows of K and V of the keys of a tile, each in whatever page it is: a lane looks one up.

struct TileRows {
    sequence: u32,
    kv_head: u32,
    row: array<u32, TILE_KEYS>,
}

fn first_rows(here: Place) -> TileRows {
    return TileRows(here.sequence.batch, here.kv_head, array<u32, TILE_KEYS>());
}

// Of the keys from `first` on, none past `last`.
fn tile_rows(rows: TileRows, first: u32, last: u32, lane: u32) -> TileRows {
    var tile = rows;
    let mine = cache_row(rows.sequence, rows.kv_head, min(first + lane % TILE_KEYS, last));
    for (var t = 0u; t < TILE_KEYS; t++) {
        tile.row[t] = subgroupShuffle(mine, t);
    }
    return tile;
}

fn tile_k_row(rows: TileRows, t: u32) -> u32 {
    var row = 0u;
    for (var u = 0u; u < TILE_KEYS; u++) {
        row = select(row, rows.row[u], u == t);
    }
    return row;
}

fn tile_v_row(rows: TileRows, t: u32) -> u32 {
    return tile_k_row(rows, t);
}
