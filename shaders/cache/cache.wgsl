// A cache of K and V: rows in texels of 16 bytes, and what tells where they are.
//
// Row (page * kv_heads + head) * page_tokens + slot holds one token of one head. K's rows come first
// in the pool, V's from `first_v` on. `words` holds, one after another: lengths, what the next append
// adds, tokens that have pages [sequence each]; page copies; the page table; scales of K, of V [row].

struct Cache {
    sequences: u32,
    kv_heads: u32,
    page_tokens: u32,
    pages: u32,
    table_pages: u32,  // of one sequence in the page table
    first_v: u32,      // texel
    counts: u32,       // first word in `words`, as all that follow
    limits: u32,
    copies: u32,       // [sequence, from and to]: pages; from NO_PAGE: none
    table: u32,
    scales: u32,
    rows: u32,         // of all pages
    capacity: u32,     // tokens of a sequence at most
}

@group(0) @binding(21) var<uniform> cache: Cache;

const NO_PAGE = 0xffffffffu;

// Tokens of a sequence that have pages. The buffer is also the caller's: whatever it holds, a token
// below this has a place in the page table.
fn room(sequence: u32) -> u32 {
    return min(words[cache.limits + sequence], cache.capacity);
}

// Tokens of a sequence that can be read.
fn cached_tokens(sequence: u32) -> u32 {
    return min(words[sequence], room(sequence));
}
