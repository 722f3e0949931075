// LSE [batch, q_heads, q_len] in a buffer of its own, as bits.

@group(0) @binding(7) var<storage, read_write> lse: array<u32>;

fn store_lse(batch: u32, head: u32, query: u32, bits: u32) {
    lse[row_start(problem.lse, batch, head, query)] = bits;
}
