// A texel of the cache: 4 f32.

const TEXEL_QUADS = 1u;

fn texel_quad(texel: vec4<u32>, quad: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(texel);
}

fn with_quad(texel: vec4<u32>, quad: u32, x: vec4<f32>) -> vec4<u32> {
    return bitcast<vec4<u32>>(x);
}
