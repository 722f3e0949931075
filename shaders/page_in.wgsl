// Pages that are to be copied, from `scratch` to where they go, with their scales.
//
// Workgroup: CACHE_THREADS texels of one page.
// Thread:    one texel, and one row's scales.
// Memory:    none shared.
// Grid:      texels of a page, then sequences.
// Twin:      cpu/cache.rs, share()
//
// Proof: as in page_out.wgsl, and both pages are tested below cache.pages, so that all rows lie below
// cache.rows.

@compute @workgroup_size(CACHE_THREADS)
fn page_in(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let rows = cache.kv_heads * cache.page_tokens;
    let texels = rows * (K_TEXELS + V_TEXELS);
    let groups = (texels + CACHE_THREADS - 1u) / CACHE_THREADS;
    let sequence = linear_group(id, size) / groups;
    let texel = linear_group(id, size) % groups * CACHE_THREADS + local;
    if (sequence >= cache.sequences || texel >= texels) {
        return;
    }
    let page = words[cache.copies + 2u * sequence];
    let to = words[cache.copies + 2u * sequence + 1u];
    if (page >= cache.pages || to >= cache.pages) {
        return;
    }
    pool_store(page_texel(to, rows, texel), scratch[sequence * texels + texel]);
    if (HAS_SCALES && texel < rows) {
        let k = cache.scales + texel;
        let v = k + cache.rows;
        words[k + to * rows] = words[k + page * rows];
        words[v + to * rows] = words[v + page * rows];
    }
}
