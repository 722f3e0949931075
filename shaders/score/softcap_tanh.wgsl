// A softcap c: c tanh(s / c).

// To a relative error of a few 1e-7. WGSL's own tanh is good to an absolute error
// only, which a large c multiplies; some drivers' overflows far out.
fn capped(s: f32, c: f32) -> f32 {
    let a = min(abs(s / c), 15.0);
    let square = a * a;
    // Lambert's continued fraction near 0: no cancellation, and no c to scale back by
    let ratio = (945.0 + square * (105.0 + square)) / (945.0 + square * (420.0 + 15.0 * square));
    let far = sign(s) * c * (1.0 - 2.0 / (exp(2.0 * a) + 1.0));
    return select(far, s * ratio, a < 0.625);
}

fn softcapped(s: f32) -> f32 {
    return capped(s, problem.softcap);
}
