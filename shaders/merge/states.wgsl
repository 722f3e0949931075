// A merge of partial results: where O and LSE of the parts and of the result lie. Element indices are
// u32; Merge::validate proves that none wraps.

struct Merge {
    parts: Strides,        // of part 0
    parts_lse: Strides,
    o: Strides,
    lse: Strides,
    part_stride: u32,      // from one part to the next
    part_lse_stride: u32,
    part_count: u32,
    q_heads: u32,
    q_len: u32,
    rows: u32,             // batch * q_heads * q_len
    groups: u32,           // workgroups with work
    sinks: u32,            // first word in `tables`
}

@group(0) @binding(0) var<uniform> problem: Merge;

// A query token of a head of a batch entry.
struct Row {
    batch: u32,
    head: u32,
    token: u32,
}
