// No residual R.

fn load_residual(token: u32, quad: u32) -> vec4<f32> {
    return vec4(0.0);
}
