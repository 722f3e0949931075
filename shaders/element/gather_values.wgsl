// Quads of V from single elements.

fn load_v(row: u32, quad: u32) -> vec4<f32> {
    let at = row + dims_of(quad, VALUE_DIM);
    let x = vec4(v_at(at.x), v_at(at.y), v_at(at.z), v_at(at.w));
    return select(vec4(0.0), x, 4u * quad + LANES < vec4(VALUE_DIM));
}
