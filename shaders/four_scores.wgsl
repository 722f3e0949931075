// The scores of one key for four rows of a tile.

// Rows `row` .. of the tile; LOWEST where the key is excluded. No test if the tile is `whole`.
fn four_scores(here: Place, row: u32, key: u32, whole: bool, dots: vec4<f32>) -> vec4<f32> {
    var s = dots;
    for (var r = 0u; r < 4u; r++) {
        let i = min(here.query + row + r, problem.q_len - 1u);
        var bits = 0u;
        if (HAS_BIAS) {
            bits = bias_bits(bias_row(here.batch, here.head, i), min(key, problem.kv_len - 1u));
        }
        s[r] = select(LOWEST, final_score(dots[r], bits), whole || is_allowed(here.batch, i, key, bits));
    }
    return s;
}
