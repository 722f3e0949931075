// Rows of K and V of the keys of a tile: a constant step from one to the next.

struct TileRows {
    k: u32,
    v: u32,
    k_step: u32,
    v_step: u32,
}

// Of the sequence's keys from 0 on: what does not change from tile to tile.
fn first_rows(here: Place) -> TileRows {
    let k = key_row(here, 0u);
    let v = value_row(here, 0u);
    return TileRows(k, v, key_row(here, 1u) - k, value_row(here, 1u) - v);
}

// Of the keys from `first` on.
fn tile_rows(rows: TileRows, first: u32, last: u32, lane: u32) -> TileRows {
    let k = rows.k + first * rows.k_step;
    let v = rows.v + first * rows.v_step;
    return TileRows(k, v, rows.k_step, rows.v_step);
}

fn tile_k_row(rows: TileRows, t: u32) -> u32 {
    return rows.k + t * rows.k_step;
}

fn tile_v_row(rows: TileRows, t: u32) -> u32 {
    return rows.v + t * rows.v_step;
}
