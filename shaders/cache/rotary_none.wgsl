// Rows go as they come.

const ROTATES = false;

fn partner(dim: u32) -> u32 {
    return dim;
}

fn turned(x: f32, other: f32, dim: u32, position: u32) -> f32 {
    return x;
}
