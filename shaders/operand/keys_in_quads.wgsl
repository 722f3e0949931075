// K and V in buffers of their own, rows and strides whole quads. A row is named by its first
// element; quad c of it is elements 4 c .. 4 c + 3.

@group(0) @binding(3) var<storage, read> k_quads: array<KeyQuad>;
@group(0) @binding(4) var<storage, read> v_quads: array<KeyQuad>;

fn load_k(row: u32, quad: u32) -> vec4<f32> {
    return key_quad(k_quads[row / 4u + quad]);
}

fn load_v(row: u32, quad: u32) -> vec4<f32> {
    return key_quad(v_quads[row / 4u + quad]);
}
