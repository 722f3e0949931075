// Dot products where a multiplication and an addition are rounded each: four at a time, which costs
// fewer digits.

// Four dims more of the dot products of four rows of Q with a row of K.
fn add_dots(
    dots: vec4<f32>,
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
    k: vec4<f32>,
) -> vec4<f32> {
    return dots + vec4(dot(a, k), dot(b, k), dot(c, k), dot(d, k));
}
