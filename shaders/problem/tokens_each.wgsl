// Key tokens of a batch entry that count: its sequence's.

fn held_tokens(batch: u32) -> u32 {
    return entry(batch).keys;
}
