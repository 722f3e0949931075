// Quads of Q from single elements.

fn load_q(row: u32, quad: u32) -> vec4<f32> {
    let at = row + dims_of(quad, HEAD_DIM);
    let x = vec4(q_at(at.x), q_at(at.y), q_at(at.z), q_at(at.w));
    return select(vec4(0.0), x, 4u * quad + LANES < vec4(HEAD_DIM));
}
