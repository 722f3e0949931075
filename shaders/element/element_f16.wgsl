// binary16, two in a word, the first in the low half.

fn from_f16(word: u32) -> vec2<f32> {
    return unpack2x16float(word);
}

// The nearest, ties to even: WGSL's own packing may round either way.
fn f16_bits(x: f32) -> u32 {
    let sign = (bitcast<u32>(x) >> 16u) & 0x8000u;
    let size = bitcast<u32>(x) & 0x7fffffffu;
    let odd = (size >> 13u) & 1u;
    // normal: the exponent's bias from 127 to 15, 13 bits of the fraction rounded away
    var bits = (size - 0x38000000u + 0xfffu + odd) >> 13u;
    // below 2^-14: a multiple of 2^-24
    if (size < 0x38800000u) {
        bits = u32(round(bitcast<f32>(size) * 0x1p+24f));
    }
    // from 65520 on: infinite
    if (size >= 0x477ff000u) {
        bits = select(0x7c00u, 0x7e00u, size > 0x7f800000u);
    }
    return sign | bits;
}

fn to_f16(x: vec2<f32>) -> u32 {
    return f16_bits(x.x) | (f16_bits(x.y) << 16u);
}
