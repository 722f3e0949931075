// Rows of the cache have no scale.

fn k_scale(row: u32) -> f32 {
    return 1.0;
}

fn v_scale(row: u32) -> f32 {
    return 1.0;
}
