// What becomes of a score: exp(s - m), and the values it weighs.

// -inf is known by its bits, since a driver may assume that floats are finite.
const NEGATIVE_INFINITY = 0xff800000u;

// "Excluded" and "no key seen yet". Every score that counts is kept above it, and finite.
const LARGEST = 0x1.fffffep+127f;
const LOWEST = -LARGEST;
const LARGEST_SCORE = 3.4e38f;

// v, or 0 for an excluded key: 0 * NaN must not leak. By bits, since a driver may assume that floats
// are finite.
fn if_seen(v: vec4<f32>, p: f32) -> vec4<f32> {
    return bitcast<vec4<f32>>(select(vec4(0u), bitcast<vec4<u32>>(v), p != 0.0));
}

// 2 x, of half a weighted mean: one that roundings took past the largest number is that number. What is
// not finite stays.
fn doubled(x: vec4<f32>) -> vec4<f32> {
    let half = 0.5 * LARGEST;
    let exponent = bitcast<vec4<u32>>(x) & vec4(0x7f800000u);
    let mean = bitcast<vec4<u32>>(2.0 * clamp(x, vec4(-half), vec4(half)));
    return bitcast<vec4<f32>>(select(mean, bitcast<vec4<u32>>(x), exponent == vec4(0x7f800000u)));
}

// exp(s - m), 0 where s is excluded.
fn exp_or_zero(s: vec4<f32>, m: vec4<f32>) -> vec4<f32> {
    return select(exp(s - m), vec4(0.0), s <= vec4(LOWEST));
}
