// Rotary embedding: the two elements of pair p turn by the angle of its position.
//
//     x' = x cos - y sin
//     y' = y cos + x sin
//
// Su et al., "RoFormer" (2021), equation 34, with cosines and sines from the host.

const ROTATES = true;

// [position, pair]: cosine, sine
@group(0) @binding(28) var<storage, read> rotary: array<vec2<f32>>;

// The other element of a dim's pair; itself beyond the rotated ones.
fn partner(dim: u32) -> u32 {
    if (dim >= 2u * ROTARY_PAIRS) {
        return dim;
    }
    if (ROTARY_ADJACENT == 1u) {
        return dim ^ 1u;
    }
    return select(dim - ROTARY_PAIRS, dim + ROTARY_PAIRS, dim < ROTARY_PAIRS);
}

fn turned(x: f32, other: f32, dim: u32, position: u32) -> f32 {
    if (dim >= 2u * ROTARY_PAIRS) {
        return x;
    }
    let pair = select(dim % ROTARY_PAIRS, dim / 2u, ROTARY_ADJACENT == 1u);
    let turn = rotary[min(position, ROTARY_POSITIONS - 1u) * ROTARY_PAIRS + pair];
    let is_first = partner(dim) > dim;
    return x * turn.x + select(other, -other, is_first) * turn.y;
}
