// Residual R [token, output], added to the result. Indices are clamped to the row.

@group(0) @binding(15) var<storage, read> residual_words: array<f32>;

fn load_residual(token: u32, quad: u32) -> vec4<f32> {
    let dims = min(4u * quad + vec4(0u, 1u, 2u, 3u), vec4(projection.output - 1u));
    let at = projection.residual_offset + token * projection.residual_row + dims;
    return vec4(residual_words[at.x], residual_words[at.y], residual_words[at.z], residual_words[at.w]);
}
