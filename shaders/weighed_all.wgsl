// The part of a key in each row's output where every row sees every key of its tile.

fn weighed(p: RowFloat, v: vec4<f32>) -> RowQuads {
    return outer(p, v);
}

// v, or 0 past the last key.
fn if_held(v: vec4<f32>, held: bool) -> vec4<f32> {
    return select(vec4(0.0), v, held);
}
