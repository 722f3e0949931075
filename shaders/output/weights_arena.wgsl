// Weights [batch, q_heads, q_len, kv_len] in the arena, as bits.

fn load_weight(index: u32) -> u32 {
    return arena[index];
}

fn store_weight(index: u32, bits: u32) {
    arena[index] = bits;
}
