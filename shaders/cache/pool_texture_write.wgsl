// The pool of rows in a texture 4096 texels wide, written.

@group(0) @binding(27) var pool_out: texture_storage_2d<rgba32uint, write>;

fn pool_store(texel: u32, value: vec4<u32>) {
    textureStore(pool_out, vec2(texel & 4095u, texel >> 12u), value);
}
