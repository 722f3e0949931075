// K and V: binary16, two in a word.

alias KeyWord = u32;
alias KeyQuad = vec2<u32>;

const KEYS_A_WORD = 2u;

fn key_element(word: KeyWord, index: u32) -> f32 {
    let pair = from_f16(word);
    return select(pair.x, pair.y, index % 2u == 1u);
}

fn key_quad(quad: KeyQuad) -> vec4<f32> {
    return vec4(from_f16(quad.x), from_f16(quad.y));
}
