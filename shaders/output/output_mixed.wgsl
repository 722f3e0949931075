// A finished row of already normalised weights, half of it: o_i = 2 o.

// Quad `column` of row `row` of the tile. A row without keys is 0 as it is.
fn put(here: Place, row: u32, column: u32, o: vec4<f32>, m: f32, l: f32) {
    let i = here.row + row;
    let quad = here.column + column;
    if (i < here.sequence.rows && quad < VALUE_QUADS) {
        let token = here.sequence.first_query + i;
        store_o(row_start(problem.o, here.sequence.batch, here.head, token), quad, doubled(o));
    }
}
