// Rows may not see keys of their tile: their weight is 0, but 0 * inf is not. So values that are not
// finite stay out of the sums, and are added at the end where they are seen.

const HIDES_KEYS = true;

fn wild(v: vec4<f32>) -> vec4<bool> {
    let exponent = bitcast<vec4<u32>>(v) & vec4(0x7f800000u);
    return exponent == vec4(0x7f800000u);
}

fn tame(v: vec4<f32>, held: bool) -> vec4<f32> {
    return bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(v), vec4(0u), wild(v)));
}

fn is_wild(v: vec4<f32>) -> bool {
    return any(wild(v));
}

// v where it is not finite, else 0.
fn wild_part(v: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(select(vec4(0u), bitcast<vec4<u32>>(v), wild(v)));
}
