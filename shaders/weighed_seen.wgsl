// The part of a key in each row's output where some rows may not see it.

fn weighed(p: RowFloat, v: vec4<f32>) -> RowQuads {
    return outer_seen(p, v);
}

// Past the last key every weight is 0.
fn if_held(v: vec4<f32>, held: bool) -> vec4<f32> {
    return v;
}
