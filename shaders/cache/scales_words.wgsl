// One scale for each row of K and of V in the cache: value = scale * byte.

const HAS_SCALES = true;

fn k_scale(row: u32) -> f32 {
    return bitcast<f32>(words[cache.scales + row]);
}

fn v_scale(row: u32) -> f32 {
    return bitcast<f32>(words[cache.scales + cache.rows + row]);
}
