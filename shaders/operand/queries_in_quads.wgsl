// Q and O in buffers of their own, rows and strides whole quads. A row is named by its first
// element; quad c of it is elements 4 c .. 4 c + 3.

@group(0) @binding(2) var<storage, read> q_quads: array<QueryQuad>;
@group(0) @binding(5) var<storage, read_write> o_quads: array<QueryQuad>;

fn load_q(row: u32, quad: u32) -> vec4<f32> {
    return query_quad(q_quads[row / 4u + quad]);
}

fn store_o(row: u32, quad: u32, value: vec4<f32>) {
    o_quads[row / 4u + quad] = output_quad(value);
}
