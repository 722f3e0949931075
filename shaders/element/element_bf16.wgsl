// bfloat16, two in a word, the first in the low half.

fn from_bf16(word: u32) -> vec2<f32> {
    return bitcast<vec2<f32>>(vec2(word << 16u, word & 0xffff0000u));
}

// The nearest, ties to even.
fn bf16_bits(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
    return select(rounded, (bits >> 16u) | 0x40u, (bits & 0x7fffffffu) > 0x7f800000u);
}

fn to_bf16(x: vec2<f32>) -> u32 {
    return bf16_bits(x.x) | (bf16_bits(x.y) << 16u);
}
