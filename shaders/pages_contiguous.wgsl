// Each sequence of the cache has one page of its own.

fn cache_row(sequence: u32, kv_head: u32, token: u32) -> u32 {
    return (sequence * cache.kv_heads + kv_head) * cache.page_tokens + token;
}
