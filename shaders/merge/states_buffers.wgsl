// Parts and result in buffers of their own.

@group(0) @binding(5) var<storage, read_write> o_words: array<QueryWord>;
@group(0) @binding(19) var<storage, read> parts_words: array<QueryWord>;
@group(0) @binding(20) var<storage, read> parts_lse: array<u32>;

fn o_word(index: u32) -> QueryWord {
    return o_words[index];
}

fn o_put(index: u32, word: QueryWord) {
    o_words[index] = word;
}

// The first element of O of a part.
fn part_start(part: u32, row: Row) -> u32 {
    return row_start(problem.parts, row.batch, row.head, row.token) + part * problem.part_stride;
}

fn part_at(index: u32) -> f32 {
    return query_element(parts_words[index / QUERIES_A_WORD], index);
}

// The bits of LSE of a part.
fn part_lse(part: u32, row: Row) -> u32 {
    let start = row_start(problem.parts_lse, row.batch, row.head, row.token);
    return parts_lse[start + part * problem.part_lse_stride];
}
