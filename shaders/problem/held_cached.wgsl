// As many keys of a sequence are there as the cache holds.

fn held_keys(batch: u32) -> u32 {
    return cached_tokens(batch);
}
