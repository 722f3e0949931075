// A texel of the cache: 16 signed bytes, in units of the row's scale.

const TEXEL_QUADS = 4u;

fn texel_quad(texel: vec4<u32>, quad: u32) -> vec4<f32> {
    let word = bitcast<i32>(texel[quad]);
    return vec4<f32>(vec4(word << 24u, word << 16u, word << 8u, word) >> vec4(24u));
}

fn with_quad(texel: vec4<u32>, quad: u32, x: vec4<f32>) -> vec4<u32> {
    let bytes = vec4<u32>(vec4<i32>(round(x))) & vec4(0xffu);
    var changed = texel;
    changed[quad] = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
    return changed;
}
