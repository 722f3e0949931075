// A finished row: o_i = o / l, LSE_i = m + ln(l). A row without keys, or past the
// sequence's query count, is 0 and -inf.

// Quad `column` of row `row` of the tile, with the row's maximum and sum.
fn put(here: Place, row: u32, column: u32, o: vec4<f32>, m: f32, l: f32) {
    let i = here.query + row;
    let quad = here.column + column;
    if (i < problem.q_len && quad < VALUE_QUADS) {
        let start = row_start(problem.o, here.batch, here.head, i);
        let empty = l == 0.0 || i >= query_count(here.batch);
        store_o(start, quad, select(o / l, vec4(0.0), empty));
        if (quad == 0u) {
            let lse = select(bitcast<u32>(m + log(l)), NEGATIVE_INFINITY, empty);
            store_lse(here.batch, here.head, i, lse);
        }
    }
}
