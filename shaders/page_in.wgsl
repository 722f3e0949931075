// Pages that are to be copied, from `scratch` to where they go, with their scales.
//
// Workgroup: a part of one page.
// Thread:    every so many texels, and rows' scales.
// Memory:    none shared.
// Grid:      PAGE_GROUPS parts, then sequences.
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
    let copy = page_copy(linear_group(id, size), local);
    if (copy.sequence >= cache.sequences) {
        return;
    }
    let page = words[cache.copies + 2u * copy.sequence];
    let to = words[cache.copies + 2u * copy.sequence + 1u];
    if (page >= cache.pages || to >= cache.pages) {
        return;
    }
    for (var texel = copy.first; texel < copy.texels; texel += PAGE_GROUPS * CACHE_THREADS) {
        let held = scratch[copy.sequence * copy.texels + texel];
        pool_store(page_texel(to, copy.rows, texel), held);
        if (HAS_SCALES && texel < copy.rows) {
            let k = cache.scales + texel;
            let v = k + cache.rows;
            words[k + to * copy.rows] = words[k + page * copy.rows];
            words[v + to * copy.rows] = words[v + page * copy.rows];
        }
    }
}
