// Rows of K and V, whatever their type and strides, side by side in a texture for `broadcast`.
//
// Workgroup: PACK_THREADS rows.
// Thread:    one row of K and of V, whole.
// Memory:    none shared.
// Grid:      one workgroup per PACK_THREADS of the rows [batch, kv_head, token].
// Twin:      cpu/rows.rs, k()
//
// Proof (compiled without runtime checks). problem.tiles is the number of rows, so a row's batch, head
// and token are below their counts, and its texels below those that plan.rs sizes the texture for;
// quads are below HEAD_QUADS or VALUE_QUADS. Loops rise by one to a constant.

@compute @workgroup_size(PACK_THREADS)
fn pack(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let row = linear_group(id, size) * PACK_THREADS + local;
    let kv_heads = problem.q_heads / problem.group_heads;
    let token = row % problem.kv_len;
    let head = row / problem.kv_len % kv_heads;
    let batch = row / problem.kv_len / kv_heads;
    if (row >= problem.tiles || token >= held_tokens(batch)) {
        return;
    }
    let k = k_row(batch, head, token);
    let v = v_row(batch, head, token);
    let texel = row * (HEAD_QUADS + VALUE_QUADS);
    for (var c = 0u; c < HEAD_QUADS; c++) {
        pool_store(texel + c, bitcast<vec4<u32>>(load_k(k, c)));
    }
    for (var c = 0u; c < VALUE_QUADS; c++) {
        pool_store(texel + HEAD_QUADS + c, bitcast<vec4<u32>>(load_v(v, c)));
    }
}
