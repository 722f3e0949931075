// Q, K, V, O in buffers of their own, f32, any strides.

@group(0) @binding(2) var<storage, read> q_words: array<f32>;
@group(0) @binding(3) var<storage, read> k_words: array<f32>;
@group(0) @binding(4) var<storage, read> v_words: array<f32>;
@group(0) @binding(5) var<storage, read_write> o_words: array<f32>;

fn q_at(index: u32) -> f32 {
    return q_words[index];
}

fn k_at(index: u32) -> f32 {
    return k_words[index];
}

fn v_at(index: u32) -> f32 {
    return v_words[index];
}

fn o_put(index: u32, value: f32) {
    o_words[index] = value;
}
