// The problem as every kernel sees it: strides, counts, scale, and which part of the work a
// workgroup has. Element indices are u32; Problem::validate proves that none wraps.

struct Problem {
    q: Strides,
    k: Strides,
    v: Strides,
    o: Strides,
    lse: Strides,
    bias: Strides,
    mask: Strides,     // in words
    scores: Strides,
    weights: Strides,
    bias_key: u32,     // stride of the bias along keys, 0 or 1
    mask_key: u32,
    q_heads: u32,
    group_heads: u32,  // query heads that share a kv head
    row_group: u32,    // query heads of a kv head whose rows ride together: all of them, or 1
    q_len: u32,        // capacity
    kv_len: u32,       // capacity
    scale: f32,
    softcap: f32,      // 0 for none
    query_tiles: u32,  // tiles along the rows of the heads that ride together, over all sequences
    first_tile: u32,   // of this dispatch
    tiles: u32,        // in this dispatch
    split_keys: u32,   // keys of one split, a multiple of every tile
    splits: u32,       // of the keys
    groups: u32,       // workgroups with work in this dispatch
    sequences: u32,    // packed
    q_lens: u32,       // first word in `tables`, as all that follow
    kv_lens: u32,
    cu_seqlens_q: u32,
    cu_seqlens_kv: u32,
    slopes: u32,
    sinks: u32,
    zero: u32,         // 0: in the bound of a loop, which compilers then do not unroll
}

@group(0) @binding(0) var<uniform> problem: Problem;

fn kv_head(head: u32) -> u32 {
    return head / problem.group_heads;
}
