// Bias b [output], added to every token. Indices are clamped to the row.

@group(0) @binding(14) var<storage, read> b_words: array<f32>;

fn load_b(quad: u32) -> vec4<f32> {
    let dims = min(4u * quad + vec4(0u, 1u, 2u, 3u), vec4(projection.output - 1u));
    let at = projection.b_offset + dims;
    return vec4(b_words[at.x], b_words[at.y], b_words[at.z], b_words[at.w]);
}
