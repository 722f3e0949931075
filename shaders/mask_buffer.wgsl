// Boolean mask [batch, q_heads, q_len, kv_len] in a buffer of its own: a bit a key, rows of whole words.

const HAS_MASK = true;

@group(0) @binding(17) var<storage, read> mask: array<u32>;

fn mask_row(batch: u32, head: u32, query: u32) -> u32 {
    return row_start(problem.mask, batch, head, query);
}

fn mask_allows(row: u32, key: u32) -> bool {
    let bit = key * problem.mask_key;
    return ((mask[row + bit / 32u] >> (bit % 32u)) & 1u) == 1u;
}
