// Additive bias [batch, q_heads, q_len, kv_len] in a buffer of its own, as bits.

const HAS_BIAS = true;

@group(0) @binding(6) var<storage, read> bias: array<u32>;

fn bias_row(batch: u32, head: u32, query: u32) -> u32 {
    return row_start(problem.bias, batch, head, query);
}

fn bias_bits(row: u32, key: u32) -> u32 {
    return bias[row + key * problem.bias_key];
}
