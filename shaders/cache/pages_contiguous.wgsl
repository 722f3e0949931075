// Each sequence of the cache has one page of its own.

fn cache_row(sequence: u32, kv_head: u32, token: u32) -> u32 {
    return (sequence * cache.kv_heads + kv_head) * cache.page_tokens + token;
}

// Of four tokens, none before the first one's.
fn four_cache_rows(sequence: u32, kv_head: u32, tokens: vec4<u32>) -> vec4<u32> {
    return cache_row(sequence, kv_head, tokens.x) + (tokens - tokens.x);
}
