// How many tokens there are and which keys a query may see, the same for every sequence, from a
// uniform that can be rewritten between submits. Never more than the capacities.

struct Lengths {
    query_count: u32,
    key_count: u32,
    band_low: i32,   // query i may see the keys i + band_low ..= i + band_high
    band_high: i32,
}

@group(0) @binding(1) var<uniform> lengths: Lengths;

fn query_count(batch: u32) -> u32 {
    return min(lengths.query_count, problem.q_len);
}

fn key_count(batch: u32) -> u32 {
    return min(lengths.key_count, problem.kv_len);
}

fn band_low(batch: u32) -> i32 {
    return lengths.band_low;
}

fn band_high(batch: u32) -> i32 {
    return lengths.band_high;
}
