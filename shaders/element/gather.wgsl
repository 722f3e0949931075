// Quads from single elements: rows of any length at any offset. Past the end of a row, 0 is read; the
// index is clamped, so that no load leaves the row.

const LANES = vec4<u32>(0u, 1u, 2u, 3u);

fn dims_of(quad: u32, dim: u32) -> vec4<u32> {
    return min(4u * quad + LANES, vec4(dim - 1u));
}
