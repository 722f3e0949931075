// Q, K, V, O, f32, any strides, in one buffer. Read and written through the same binding, since
// two bindings of one buffer could not be mixed.

@group(0) @binding(10) var<storage, read_write> arena: array<u32>;

fn q_at(index: u32) -> f32 {
    return bitcast<f32>(arena[index]);
}

fn k_at(index: u32) -> f32 {
    return bitcast<f32>(arena[index]);
}

fn v_at(index: u32) -> f32 {
    return bitcast<f32>(arena[index]);
}

fn o_put(index: u32, value: f32) {
    arena[index] = bitcast<u32>(value);
}
