// K and V: f32.

alias KeyWord = u32;
alias KeyQuad = vec4<u32>;

const KEYS_A_WORD = 1u;

fn key_element(word: KeyWord, index: u32) -> f32 {
    return bitcast<f32>(word);
}

fn key_quad(quad: KeyQuad) -> vec4<f32> {
    return bitcast<vec4<f32>>(quad);
}
