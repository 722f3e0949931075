// The rows of K and V of four keys.

fn four_key_rows(here: Place, keys: vec4<u32>) -> vec4<u32> {
    return vec4(
        key_row(here, keys.x),
        key_row(here, keys.y),
        key_row(here, keys.z),
        key_row(here, keys.w),
    );
}

fn four_value_rows(here: Place, keys: vec4<u32>, k_rows: vec4<u32>) -> vec4<u32> {
    return vec4(
        value_row(here, keys.x),
        value_row(here, keys.y),
        value_row(here, keys.z),
        value_row(here, keys.w),
    );
}
