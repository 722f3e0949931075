// Quads to words of two elements: rows of any length at any even offset. The half word past the end
// of a row keeps what it holds; no other row shares it.

fn put_pair(index: u32, pair: u32, left: u32) {
    if (left == 1u) {
        o_put(index, (o_word(index) & 0xffff0000u) | (pair & 0xffffu));
    } else {
        o_put(index, pair);
    }
}

fn store_o(row: u32, quad: u32, value: vec4<f32>) {
    let first = row / 2u + 2u * quad;
    let pairs = output_quad(value);
    put_pair(first, pairs.x, VALUE_DIM - 4u * quad);
    if (4u * quad + 2u < VALUE_DIM) {
        put_pair(first + 1u, pairs.y, VALUE_DIM - 4u * quad - 2u);
    }
}
