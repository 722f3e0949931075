// The pool of rows in a buffer, read.

@group(0) @binding(24) var<storage, read> pool: array<vec4<u32>>;

fn pool_load(texel: u32) -> vec4<u32> {
    return pool[texel];
}
