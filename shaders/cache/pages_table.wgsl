// Each sequence of the cache has pages anywhere in the pool, in the order of the page table.

fn cache_row(sequence: u32, kv_head: u32, token: u32) -> u32 {
    let at = cache.table + sequence * cache.table_pages + token / cache.page_tokens;
    let page = min(words[at], cache.pages - 1u);
    return (page * cache.kv_heads + kv_head) * cache.page_tokens + token % cache.page_tokens;
}

// Of four tokens of those from one multiple of 4 to the next.
fn four_cache_rows(sequence: u32, kv_head: u32, tokens: vec4<u32>) -> vec4<u32> {
    let first = cache_row(sequence, kv_head, tokens.x);
    if (cache.page_tokens % 4u == 0u) {
        return first + (tokens - tokens.x);
    }
    return vec4(
        first,
        cache_row(sequence, kv_head, tokens.y),
        cache_row(sequence, kv_head, tokens.z),
        cache_row(sequence, kv_head, tokens.w),
    );
}
