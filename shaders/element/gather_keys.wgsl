// Quads of K from single elements.

fn load_k(row: u32, quad: u32) -> vec4<f32> {
    let at = row + dims_of(quad, HEAD_DIM);
    let x = vec4(k_at(at.x), k_at(at.y), k_at(at.z), k_at(at.w));
    return select(vec4(0.0), x, 4u * quad + LANES < vec4(HEAD_DIM));
}
