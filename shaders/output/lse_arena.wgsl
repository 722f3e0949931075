// LSE [batch, q_heads, q_len] in the arena, as bits.

fn store_lse(batch: u32, head: u32, query: u32, bits: u32) {
    arena[row_start(problem.lse, batch, head, query)] = bits;
}
