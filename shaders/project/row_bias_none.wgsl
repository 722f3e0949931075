// No bias b.

fn load_b(quad: u32) -> vec4<f32> {
    return vec4(0.0);
}
