// Rows of K and V without a scale of their own.

fn k_scale(row: u32) -> f32 {
    return 1.0;
}

fn v_scale(row: u32) -> f32 {
    return 1.0;
}

fn raw_k(row: u32, quad: u32) -> vec4<f32> {
    return load_k(row, quad);
}

fn raw_v(row: u32, quad: u32) -> vec4<f32> {
    return load_v(row, quad);
}
