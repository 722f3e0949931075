// The pool of rows in a texture 4096 texels wide, read: on some software adapters a load from a
// texture costs a twentieth of one from a buffer.

@group(0) @binding(25) var pool: texture_storage_2d<rgba32uint, read>;

fn pool_load(texel: u32) -> vec4<u32> {
    return textureLoad(pool, vec2(texel & 4095u, texel >> 12u));
}
