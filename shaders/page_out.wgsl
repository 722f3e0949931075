// Pages that are to be copied, to `scratch`: a sequence that writes into a page it shares gets a page
// of its own first.
//
// Workgroup: CACHE_THREADS texels of one page.
// Thread:    one texel.
// Memory:    none shared.
// Grid:      texels of a page, then sequences.
// Twin:      cpu/cache.rs, share()
//
// Proof: sequence < cache.sequences; the page is clamped below cache.pages; `texel` is tested below
// what a page has, for as many of which for each sequence cache.rs sizes `scratch`.

@compute @workgroup_size(CACHE_THREADS)
fn page_out(
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
    if (page >= cache.pages) {
        return;
    }
    scratch[sequence * texels + texel] = pool_load(page_texel(page, rows, texel));
}
