// X, W, Y with rows of any length at any offset. Past the end of a row, 0 is read and nothing is
// written; the index is clamped, so that no load leaves the row.

const LANES = vec4<u32>(0u, 1u, 2u, 3u);

@group(0) @binding(12) var<storage, read> x_words: array<f32>;
@group(0) @binding(13) var<storage, read> w_words: array<f32>;
@group(0) @binding(16) var<storage, read_write> y_words: array<f32>;

fn load_x(token: u32, quad: u32) -> vec4<f32> {
    let dims = 4u * quad + LANES;
    let row = projection.x_offset + token * projection.x_row;
    let at = row + min(dims, vec4(projection.input - 1u));
    let value = vec4(x_words[at.x], x_words[at.y], x_words[at.z], x_words[at.w]);
    return select(vec4(0.0), value, dims < vec4(projection.input));
}

fn load_w(input: u32, quad: u32) -> vec4<f32> {
    let dims = 4u * quad + LANES;
    let row = projection.w_offset + input * projection.w_row;
    let at = row + min(dims, vec4(projection.output - 1u));
    let value = vec4(w_words[at.x], w_words[at.y], w_words[at.z], w_words[at.w]);
    return select(vec4(0.0), value, dims < vec4(projection.output));
}

fn store_y(token: u32, quad: u32, value: vec4<f32>) {
    let row = projection.y_offset + token * projection.y_row;
    for (var lane = 0u; lane < 4u; lane++) {
        if (4u * quad + lane < projection.output) {
            y_words[row + 4u * quad + lane] = value[lane];
        }
    }
}
