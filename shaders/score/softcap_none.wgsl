// No softcap.

fn softcapped(s: f32) -> f32 {
    return s;
}
