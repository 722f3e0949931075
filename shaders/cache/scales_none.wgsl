// Rows of the cache have no scale.

const HAS_SCALES = false;

fn k_scale(row: u32) -> f32 {
    return 1.0;
}

fn v_scale(row: u32) -> f32 {
    return 1.0;
}
