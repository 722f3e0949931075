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

// Of 32 keys from `key` on, the first in bit 0; 0 or 1 past the last one.
fn mask_bits(row: u32, key: u32) -> u32 {
    if (problem.mask_key == 0u) {
        return 0u - (mask[row] & 1u);
    }
    let word = key / 32u;
    let shift = key % 32u;
    let next = min(word + 1u, (problem.kv_len - 1u) / 32u);
    let high = select(mask[row + next] << (32u - shift), 0u, shift == 0u);
    return (mask[row + word] >> shift) | high;
}
