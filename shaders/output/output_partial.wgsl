// A row after one split of the keys, kept for `merge`.

// Quad `column` of row `row` of the tile, with the row's maximum and sum.
fn put(here: Place, row: u32, column: u32, o: vec4<f32>, m: f32, l: f32) {
    let start = partial_start(here.group, row);
    scratch[start + column] = o;
    if (column == 0u) {
        scratch[start + COLUMN_QUADS] = vec4(m, l, 0.0, 0.0);
    }
}
