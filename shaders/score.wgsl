// One score, from the dot product on: s = softcap(scale q . k) - slope |i + shift - j| + bias.

// `distance` is i + shift - j.
fn final_score(dot: f32, slope: f32, distance: i32, bias: u32) -> f32 {
    var s = softcapped(dot);
    if (HAS_ALIBI) {
        s -= slope * abs(f32(distance));
    }
    s += clamp(bitcast<f32>(bias), -2.3e38, 2.3e38);
    return clamp(s, -LARGEST_SCORE, LARGEST_SCORE);
}
