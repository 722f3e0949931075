// No bias: 0 for every key.

const HAS_BIAS = false;

fn bias_row(batch: u32, head: u32, query: u32) -> u32 {
    return 0u;
}

fn bias_bits(row: u32, key: u32) -> u32 {
    return 0u;
}
