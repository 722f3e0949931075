// What is merged: the parts, in the buffers that hold the result, which is written over part 0. Read
// and written through the same binding, since two bindings of one buffer could not be mixed.

@group(0) @binding(5) var<storage, read_write> o_words: array<QueryWord>;

fn o_word(index: u32) -> QueryWord {
    return o_words[index];
}

fn o_put(index: u32, word: QueryWord) {
    o_words[index] = word;
}

fn state_count() -> u32 {
    return problem.part_count;
}

fn state_lse(state: u32, row: Row) -> u32 {
    let start = row_start(problem.lse, row.batch, row.head, row.token);
    return lse[start + state * problem.part_lse_stride];
}

fn o_at(index: u32) -> f32 {
    return query_element(o_word(index / QUERIES_A_WORD), index);
}

// Four dims of O.
fn state_quad(state: u32, row: Row, dims: vec4<u32>) -> vec4<f32> {
    let start = row_start(problem.o, row.batch, row.head, row.token);
    let at = start + state * problem.part_stride + dims;
    return vec4(o_at(at.x), o_at(at.y), o_at(at.z), o_at(at.w));
}
