// K and V: f16, where the device has the type.

alias KeyWord = f16;
alias KeyQuad = vec4<f16>;

const KEYS_A_WORD = 1u;

fn key_element(word: KeyWord, index: u32) -> f32 {
    return f32(word);
}

fn key_quad(quad: KeyQuad) -> vec4<f32> {
    return vec4<f32>(quad);
}
