// Sizes and strides of a projection, in elements. Element indices are u32;
// Projection::validate proves that none wraps.

struct Projection {
    x_offset: u32,
    x_row: u32,         // from one token of X to the next
    w_offset: u32,
    w_row: u32,         // from one input dim of W to the next
    b_offset: u32,
    residual_offset: u32,
    residual_row: u32,
    y_offset: u32,
    y_row: u32,
    tokens: u32,
    input: u32,         // dims of a token of X
    output: u32,        // dims of a token of Y
    output_tiles: u32,
    groups: u32,        // workgroups with work
}

@group(0) @binding(0) var<uniform> projection: Projection;
