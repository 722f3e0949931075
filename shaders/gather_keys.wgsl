// Quads of K and V from single elements.

fn load_k(row: u32, quad: u32) -> vec4<f32> {
    let at = row + head_dims(quad);
    let x = vec4(k_at(at.x), k_at(at.y), k_at(at.z), k_at(at.w));
    return select(vec4(0.0), x, 4u * quad + LANES < vec4(HEAD_DIM));
}

fn load_v(row: u32, quad: u32) -> vec4<f32> {
    let at = row + value_dims(quad);
    let x = vec4(v_at(at.x), v_at(at.y), v_at(at.z), v_at(at.w));
    return select(vec4(0.0), x, 4u * quad + LANES < vec4(VALUE_DIM));
}
