// K and V, any strides, in the arena.

fn k_at(index: u32) -> f32 {
    return key_element(arena[index / KEYS_A_WORD], index);
}

fn v_at(index: u32) -> f32 {
    return key_element(arena[index / KEYS_A_WORD], index);
}
