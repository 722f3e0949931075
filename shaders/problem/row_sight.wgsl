// Which keys of a tile a row sees, a bit each.

// By lengths, band and mask; bit t is key first + t, below `end`. TILE_KEYS < 32.
fn row_sight(here: Place, row: Row, first: u32, end: u32) -> u32 {
    let past = first + TILE_KEYS;
    let low = clamp(row.begin, first, past) - first;
    let high = clamp(min(row.end, end), first, past) - first;
    var bits = select(0u, (1u << high) - (1u << low), high > low);
    if (HAS_MASK) {
        let mask_row = mask_row(here.sequence.batch, row.head, row.token);
        bits &= mask_bits(mask_row, here.sequence.first_key + first);
    }
    return bits;
}
