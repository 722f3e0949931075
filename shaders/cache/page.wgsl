// The texels of a page, K's before V's, in the pool; those on their way in `scratch`.

@group(0) @binding(11) var<storage, read_write> scratch: array<vec4<u32>>;

fn page_texel(page: u32, rows: u32, texel: u32) -> u32 {
    if (texel < rows * K_TEXELS) {
        return page * rows * K_TEXELS + texel;
    }
    return cache.first_v + page * rows * V_TEXELS + texel - rows * K_TEXELS;
}

// A thread's part of a sequence's page copy: every so many texels from `first` on.
struct PageCopy {
    sequence: u32,
    first: u32,
    rows: u32,    // of a page
    texels: u32,  // of a page
}

// Few workgroups for each sequence, since most have nothing to copy.
fn page_copy(group: u32, local: u32) -> PageCopy {
    let rows = cache.kv_heads * cache.page_tokens;
    let first = group % PAGE_GROUPS * CACHE_THREADS + local;
    return PageCopy(group / PAGE_GROUPS, first, rows, rows * (K_TEXELS + V_TEXELS));
}
