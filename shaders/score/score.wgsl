// One score, from the dot product on: s = softcap(scale q . k) - slope |i + shift - j| + bias,
// within +-LARGEST_SCORE.

// `distance` is i + shift - j.
fn final_score(dot: f32, slope: f32, distance: i32, bias: u32) -> f32 {
    let s = softcapped(dot);
    if (!HAS_ALIBI && !HAS_BIAS) {
        return clamp(s, -LARGEST_SCORE, LARGEST_SCORE);
    }
    // In quarters: huge terms do not overflow before all are added.
    var quarter = 0.25 * s;
    if (HAS_ALIBI) {
        quarter -= 0.25 * slope * abs(f32(distance));
    }
    if (HAS_BIAS) {
        quarter += 0.25 * bitcast<f32>(bias);
    }
    return 4.0 * clamp(quarter, -0.25 * LARGEST_SCORE, 0.25 * LARGEST_SCORE);
}
