// K and V where `pack` has put them: as f32 in a texture, each row of K and its V side by side. A row
// is named by its first texel.

fn pack_row(batch: u32, kv_head: u32, token: u32) -> u32 {
    let kv_heads = problem.q_heads / problem.group_heads;
    let row = (batch * kv_heads + kv_head) * problem.kv_len + token;
    return row * (HEAD_QUADS + VALUE_QUADS);
}

fn k_row(batch: u32, kv_head: u32, token: u32) -> u32 {
    return pack_row(batch, kv_head, token);
}

fn v_row(batch: u32, kv_head: u32, token: u32) -> u32 {
    return pack_row(batch, kv_head, token) + HEAD_QUADS;
}

fn load_k(row: u32, quad: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(pool_load(row + quad));
}

fn load_v(row: u32, quad: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(pool_load(row + quad));
}
