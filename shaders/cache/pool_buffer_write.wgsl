// The pool of rows in a buffer, written.

@group(0) @binding(26) var<storage, read_write> pool_out: array<vec4<u32>>;

fn pool_store(texel: u32, value: vec4<u32>) {
    pool_out[texel] = value;
}
