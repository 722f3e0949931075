// Weights [batch, q_heads, q_len, kv_len] in a buffer of their own, as bits.

@group(0) @binding(9) var<storage, read_write> weight_words: array<u32>;

fn load_weight(index: u32) -> u32 {
    return weight_words[index];
}

fn store_weight(index: u32, bits: u32) {
    weight_words[index] = bits;
}
