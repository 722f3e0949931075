// LSE is not wanted.

fn store_lse(batch: u32, head: u32, query: u32, bits: u32) {
}
