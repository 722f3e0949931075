// A tile of K, then of V, in workgroup memory: f32, with the scale in K.

alias TileQuad = vec4<f32>;

fn key_tile_quad(k: vec4<f32>) -> TileQuad {
    return problem.scale * k;
}

fn value_tile_quad(v: vec4<f32>) -> TileQuad {
    return v;
}

fn from_tile(quad: TileQuad) -> vec4<f32> {
    return quad;
}

fn from_dots(dots: vec4<f32>) -> vec4<f32> {
    return dots;
}
