// How many tokens there are and which keys a query may see, from a uniform that can be rewritten
// between submits.

struct Lengths {
    query_count: u32,
    key_count: u32,
    band_low: i32,   // query i may see the keys i + band_low ..= i + band_high
    band_high: i32,
    shift: i32,      // query i stands at key i + shift
    relative: u32,   // 1: a sequence's own keys - queries come to the three above
}

@group(0) @binding(1) var<uniform> lengths: Lengths;

// A sequence: a batch entry, or a part of a packed one. Its tokens are counted from its first.
struct Sequence {
    batch: u32,
    first_query: u32,
    first_key: u32,
    rows: u32,        // query rows that are written
    queries: u32,     // and those that exist
    keys: u32,
    low: i32,
    high: i32,
    shift: i32,
    first_tile: u32,  // its first query tile among those of the head
}

// Positions stay below 2^30, so that sums of two of these stay in range.
const FURTHEST = 0x40000000;

fn with_band(sequence: Sequence) -> Sequence {
    var s = sequence;
    let own = select(0, i32(s.keys) - i32(s.queries), lengths.relative == 1u);
    s.low = max(lengths.band_low + own, -FURTHEST);
    s.high = min(lengths.band_high + own, FURTHEST - 1);
    s.shift = lengths.shift + own;
    return s;
}

// The keys [x, y) that query i of a sequence sees by lengths and band.
fn visible(s: Sequence, i: u32) -> vec2<u32> {
    let high = max(i32(i) + s.high + 1, 0);
    let end = select(0u, min(u32(high), s.keys), i < s.queries);
    return vec2(min(u32(max(i32(i) + s.low, 0)), end), end);
}
