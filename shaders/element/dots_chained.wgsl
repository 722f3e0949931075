// Dot products where a multiply-add is one instruction.

// Four dims more of the dot products of four rows of Q with a row of K.
fn add_dots(
    dots: vec4<f32>,
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
    k: vec4<f32>,
) -> vec4<f32> {
    // dot() begins with a multiplication and is added to `dots` at the end: one instruction more.
    var s = dots + vec4(a.x, b.x, c.x, d.x) * k.x;
    s += vec4(a.y, b.y, c.y, d.y) * k.y;
    s += vec4(a.z, b.z, c.z, d.z) * k.z;
    s += vec4(a.w, b.w, c.w, d.w) * k.w;
    return s;
}
