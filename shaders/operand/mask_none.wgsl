// No mask.

const HAS_MASK = false;

fn mask_row(batch: u32, head: u32, query: u32) -> u32 {
    return 0u;
}

fn mask_allows(row: u32, key: u32) -> bool {
    return true;
}

fn mask_bits(row: u32, key: u32) -> u32 {
    return 0xffffffffu;
}
