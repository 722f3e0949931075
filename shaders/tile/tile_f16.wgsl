// A tile of K, then of V, in workgroup memory: f16, as K and V are stored. The scale comes to the dot
// products, since it would cost digits here; those overflow only with an f32 Q beyond 1e31.

alias TileQuad = vec4<f16>;

fn key_tile_quad(k: vec4<f32>) -> TileQuad {
    return TileQuad(k);
}

fn value_tile_quad(v: vec4<f32>) -> TileQuad {
    return TileQuad(v);
}

fn from_tile(quad: TileQuad) -> vec4<f32> {
    return vec4<f32>(quad);
}

fn from_dots(dots: vec4<f32>) -> vec4<f32> {
    return problem.scale * dots;
}
