// Quads from single elements: rows of any length at any offset. Past the end of a row, 0 is read; the
// index is clamped, so that no load leaves the row.

const LANES = vec4<u32>(0u, 1u, 2u, 3u);

fn head_dims(quad: u32) -> vec4<u32> {
    return min(4u * quad + LANES, vec4(HEAD_DIM - 1u));
}

fn value_dims(quad: u32) -> vec4<u32> {
    return min(4u * quad + LANES, vec4(VALUE_DIM - 1u));
}

fn load_q(row: u32, quad: u32) -> vec4<f32> {
    let at = row + head_dims(quad);
    let x = vec4(q_at(at.x), q_at(at.y), q_at(at.z), q_at(at.w));
    return select(vec4(0.0), x, 4u * quad + LANES < vec4(HEAD_DIM));
}

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
