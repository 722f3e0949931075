// Quads to single words: rows of any length at any offset. Nothing is written past a row's end.

fn store_o(row: u32, quad: u32, value: vec4<f32>) {
    let first = row + 4u * quad;
    o_put(first, output_word(value.x));
    if (4u * quad + 1u < VALUE_DIM) {
        o_put(first + 1u, output_word(value.y));
    }
    if (4u * quad + 2u < VALUE_DIM) {
        o_put(first + 2u, output_word(value.z));
    }
    if (4u * quad + 3u < VALUE_DIM) {
        o_put(first + 3u, output_word(value.w));
    }
}
