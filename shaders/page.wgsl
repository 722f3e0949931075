// The texels of a page, K's before V's, in the pool; those on their way in `scratch`.

@group(0) @binding(11) var<storage, read_write> scratch: array<vec4<u32>>;

fn page_texel(page: u32, rows: u32, texel: u32) -> u32 {
    if (texel < rows * K_TEXELS) {
        return page * rows * K_TEXELS + texel;
    }
    return cache.first_v + page * rows * V_TEXELS + texel - rows * K_TEXELS;
}
