// Q and O, any strides, in the arena.

fn q_at(index: u32) -> f32 {
    return query_element(arena[index / QUERIES_A_WORD], index);
}

fn o_word(index: u32) -> u32 {
    return arena[index];
}

fn o_put(index: u32, word: u32) {
    arena[index] = word;
}
