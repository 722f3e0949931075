// Q and O: bfloat16, two in a word.

alias QueryWord = u32;
alias QueryQuad = vec2<u32>;

const QUERIES_A_WORD = 2u;

fn query_element(word: QueryWord, index: u32) -> f32 {
    let pair = from_bf16(word);
    return select(pair.x, pair.y, index % 2u == 1u);
}

fn query_quad(quad: QueryQuad) -> vec4<f32> {
    return vec4(from_bf16(quad.x), from_bf16(quad.y));
}

fn output_quad(x: vec4<f32>) -> QueryQuad {
    return vec2(to_bf16(x.xy), to_bf16(x.zw));
}
