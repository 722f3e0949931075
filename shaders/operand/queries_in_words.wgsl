// Q and O in buffers of their own, any strides.

@group(0) @binding(2) var<storage, read> q_words: array<QueryWord>;
@group(0) @binding(5) var<storage, read_write> o_words: array<QueryWord>;

fn q_at(index: u32) -> f32 {
    return query_element(q_words[index / QUERIES_A_WORD], index);
}

fn o_word(index: u32) -> QueryWord {
    return o_words[index];
}

fn o_put(index: u32, word: QueryWord) {
    o_words[index] = word;
}
