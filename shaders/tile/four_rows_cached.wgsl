// The rows of a cache of four keys, one after another from a multiple of 4 on, or one of them again.

fn four_key_rows(here: Place, keys: vec4<u32>) -> vec4<u32> {
    return four_cache_rows(here.sequence.batch, here.kv_head, keys);
}

fn four_value_rows(here: Place, keys: vec4<u32>, k_rows: vec4<u32>) -> vec4<u32> {
    return k_rows;
}
