// K and V in a cache. A row is named by its number there, the same for both.

fn k_row(sequence: u32, kv_head: u32, token: u32) -> u32 {
    return cache_row(sequence, kv_head, token);
}

fn v_row(sequence: u32, kv_head: u32, token: u32) -> u32 {
    return cache_row(sequence, kv_head, token);
}

fn load_k(row: u32, quad: u32) -> vec4<f32> {
    let texel = pool_load(row * K_TEXELS + quad / TEXEL_QUADS);
    return k_scale(row) * texel_quad(texel, quad % TEXEL_QUADS);
}

fn load_v(row: u32, quad: u32) -> vec4<f32> {
    let texel = pool_load(cache.first_v + row * V_TEXELS + quad / TEXEL_QUADS);
    return v_scale(row) * texel_quad(texel, quad % TEXEL_QUADS);
}
