// Q and O: f32.

alias QueryWord = u32;
alias QueryQuad = vec4<u32>;

const QUERIES_A_WORD = 1u;

fn query_element(word: QueryWord, index: u32) -> f32 {
    return bitcast<f32>(word);
}

fn query_quad(quad: QueryQuad) -> vec4<f32> {
    return bitcast<vec4<f32>>(quad);
}

fn output_word(x: f32) -> QueryWord {
    return bitcast<u32>(x);
}

fn output_quad(x: vec4<f32>) -> QueryQuad {
    return bitcast<vec4<u32>>(x);
}
