// K and V in buffers of their own, any strides.

@group(0) @binding(3) var<storage, read> k_words: array<KeyWord>;
@group(0) @binding(4) var<storage, read> v_words: array<KeyWord>;

fn k_at(index: u32) -> f32 {
    return key_element(k_words[index / KEYS_A_WORD], index);
}

fn v_at(index: u32) -> f32 {
    return key_element(v_words[index / KEYS_A_WORD], index);
}
