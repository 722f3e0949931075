// A texel of the cache: 8 bfloat16.

const TEXEL_QUADS = 2u;

fn texel_quad(texel: vec4<u32>, quad: u32) -> vec4<f32> {
    let pairs = select(texel.xy, texel.zw, quad == 1u);
    return vec4(from_bf16(pairs.x), from_bf16(pairs.y));
}

fn with_quad(texel: vec4<u32>, quad: u32, x: vec4<f32>) -> vec4<u32> {
    let pairs = vec2(to_bf16(x.xy), to_bf16(x.zw));
    return select(vec4(texel.xy, pairs), vec4(pairs, texel.zw), quad == 0u);
}
