// Weights take the place of the scores.

fn store_weight(index: u32, bits: u32) {
    store_score(index, bits);
}
