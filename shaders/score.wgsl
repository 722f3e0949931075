// One score, from the dot product on: s = softcap(scale q . k) - slope |i + shift - j| + bias.

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

// `distance` is i + shift - j.
fn final_score(dot: f32, slope: f32, distance: i32, bias: u32) -> f32 {
    var s = dot;
    if (problem.softcap > 0.0) {
        s = capped(s, problem.softcap);
    }
    if (HAS_ALIBI) {
        s -= slope * abs(f32(distance));
    }
    s += clamp(bitcast<f32>(bias), -2.3e38, 2.3e38);
    return clamp(s, -LARGEST_SCORE, LARGEST_SCORE);
}
