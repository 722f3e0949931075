// Q and O: f16, where the device has the type.

alias QueryWord = f16;
alias QueryQuad = vec4<f16>;

const QUERIES_A_WORD = 1u;

fn query_element(word: QueryWord, index: u32) -> f32 {
    return f32(word);
}

fn query_quad(quad: QueryQuad) -> vec4<f32> {
    return vec4<f32>(quad);
}

fn output_word(x: f32) -> QueryWord {
    return f16(x);
}

fn output_quad(x: vec4<f32>) -> QueryQuad {
    return vec4<f16>(x);
}
