// K and V in a cache. A row is named by its number there, the same for both.

fn k_row(sequence: u32, kv_head: u32, token: u32) -> u32 {
    return cache_row(sequence, kv_head, token);
}

fn v_row(sequence: u32, kv_head: u32, token: u32) -> u32 {
    return cache_row(sequence, kv_head, token);
}

// Without the row's scale.
fn raw_k(row: u32, quad: u32) -> vec4<f32> {
    return texel_quad(pool_load(row * K_TEXELS + quad / TEXEL_QUADS), quad % TEXEL_QUADS);
}

fn raw_v(row: u32, quad: u32) -> vec4<f32> {
    let texel = cache.first_v + row * V_TEXELS + quad / TEXEL_QUADS;
    return texel_quad(pool_load(texel), quad % TEXEL_QUADS);
}

fn load_k(row: u32, quad: u32) -> vec4<f32> {
    return k_scale(row) * raw_k(row, quad);
}

fn load_v(row: u32, quad: u32) -> vec4<f32> {
    return v_scale(row) * raw_v(row, quad);
}
