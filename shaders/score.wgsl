// One score, from the dot product on: s = softcap(scale q . k) + bias, and whether it counts.

// -inf is known by its bits, since a driver may assume that floats are finite.
const NEGATIVE_INFINITY = 0xff800000u;

// "Excluded" and "no key seen yet". Every score that counts is kept above it, and finite.
const LOWEST = -0x1.fffffep+127f;
const LARGEST_SCORE = 3.4e38f;

// c tanh(s / c) to a relative error of a few 1e-7. WGSL's own tanh is good to an absolute error
// only, which a large c multiplies; some drivers' overflows far out.
fn capped(s: f32, c: f32) -> f32 {
    let a = min(abs(s / c), 15.0);
    let square = a * a;
    // Lambert's continued fraction near 0: no cancellation, and no c to scale back by
    let ratio = (945.0 + square * (105.0 + square)) / (945.0 + square * (420.0 + 15.0 * square));
    let far = sign(s) * c * (1.0 - 2.0 / (exp(2.0 * a) + 1.0));
    return select(far, s * ratio, a < 0.625);
}

fn final_score(dot: f32, bias: u32) -> f32 {
    var s = dot;
    if (problem.softcap > 0.0) {
        s = capped(s, problem.softcap);
    }
    s += clamp(bitcast<f32>(bias), -2.3e38, 2.3e38);
    return clamp(s, -LARGEST_SCORE, LARGEST_SCORE);
}

fn is_allowed(batch: u32, query: u32, key: u32, bias: u32) -> bool {
    let i = i32(query);
    let j = i32(key);
    return query < query_count(batch)
        && key < key_count(batch)
        && j >= i + band_low(batch)
        && j <= i + band_high(batch)
        && bias != NEGATIVE_INFINITY;
}

// v, or 0 for an excluded key: 0 * NaN must not leak. By bits, since a driver may assume that floats
// are finite.
fn if_seen(v: vec4<f32>, p: f32) -> vec4<f32> {
    return bitcast<vec4<f32>>(select(vec4(0u), bitcast<vec4<u32>>(v), p != 0.0));
}

// exp(s - m), 0 where s is excluded.
fn exp_or_zero(s: vec4<f32>, m: vec4<f32>) -> vec4<f32> {
    return select(exp(s - m), vec4(0.0), s <= vec4(LOWEST));
}
