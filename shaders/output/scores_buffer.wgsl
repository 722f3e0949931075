// Scores [batch, q_heads, q_len, kv_len] in a buffer of their own, as bits.

@group(0) @binding(8) var<storage, read_write> score_words: array<u32>;

fn load_score(index: u32) -> u32 {
    return score_words[index];
}

fn store_score(index: u32, bits: u32) {
    score_words[index] = bits;
}
