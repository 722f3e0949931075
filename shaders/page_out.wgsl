// Pages that are to be copied, to `scratch`: a sequence that writes into a page it shares gets a page
// of its own first.
//
// Workgroup: a part of one page.
// Thread:    every so many texels.
// Memory:    none shared.
// Grid:      PAGE_GROUPS parts, then sequences.
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
    let copy = page_copy(linear_group(id, size), local);
    if (copy.sequence >= cache.sequences) {
        return;
    }
    let page = words[cache.copies + 2u * copy.sequence];
    if (page >= cache.pages) {
        return;
    }
    for (var texel = copy.first; texel < copy.texels; texel += PAGE_GROUPS * CACHE_THREADS) {
        scratch[copy.sequence * copy.texels + texel] = pool_load(page_texel(page, copy.rows, texel));
    }
}
