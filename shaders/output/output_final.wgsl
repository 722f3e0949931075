// A finished row: o_i = o / l, LSE_i = m + ln(l / unit), where o and l are in units of weight_unit(). A
// row without keys, or past the sequence's queries, is 0 and -inf. A sink joins l after the LSE.

// Quad `column` of row `row` of the tile, with the row's maximum and sum.
fn put(here: Place, row: u32, column: u32, o: vec4<f32>, m: f32, l: f32) {
    let i = query_of(here, row);
    let head = head_of(here, row);
    let quad = here.column + column;
    if (i < here.sequence.rows && quad < VALUE_QUADS) {
        let token = here.sequence.first_query + i;
        let empty = l == 0.0 || i >= here.sequence.queries;
        let unit = weight_unit(here);
        var mixed = vec4(0.0);
        if (!empty) {
            if (HAS_SINKS) {
                let logit = sink(head);
                let most = max(m, logit);
                let alpha = exp(m - most);
                mixed = doubled(o * (0.5 * alpha / (l * alpha + unit * exp(logit - most))));
            } else {
                mixed = doubled(o / (l + l));
            }
        }
        store_o(row_start(problem.o, here.sequence.batch, head, token), quad, mixed);
        if (quad == 0u) {
            // 1 / unit, exactly: the exponent's bits count from 127
            let units = bitcast<f32>((254u << 23u) - bitcast<u32>(unit));
            let lse = select(bitcast<u32>(m + log(l * units)), NEGATIVE_INFINITY, empty);
            store_lse(here.sequence.batch, head, token, lse);
        }
    }
}
