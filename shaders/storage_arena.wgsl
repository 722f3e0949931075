// Q, K, V, O, any strides, in one buffer. Read and written through the same binding, since two
// bindings of one buffer could not be mixed.

@group(0) @binding(10) var<storage, read_write> arena: array<u32>;

fn q_at(index: u32) -> f32 {
    return query_element(arena[index / QUERIES_A_WORD], index);
}

fn k_at(index: u32) -> f32 {
    return key_element(arena[index / KEYS_A_WORD], index);
}

fn v_at(index: u32) -> f32 {
    return key_element(arena[index / KEYS_A_WORD], index);
}

fn o_word(index: u32) -> u32 {
    return arena[index];
}

fn o_put(index: u32, word: u32) {
    arena[index] = word;
}
