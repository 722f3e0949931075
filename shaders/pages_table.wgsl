// Each sequence of the cache has pages anywhere in the pool, in the order of the page table.

fn cache_row(sequence: u32, kv_head: u32, token: u32) -> u32 {
    let at = cache.table + sequence * cache.table_pages + token / cache.page_tokens;
    let page = min(words[at], cache.pages - 1u);
    return (page * cache.kv_heads + kv_head) * cache.page_tokens + token % cache.page_tokens;
}
