// X, W, Y with rows and strides of whole quads of f32.

@group(0) @binding(12) var<storage, read> x_quads: array<vec4<f32>>;
@group(0) @binding(13) var<storage, read> w_quads: array<vec4<f32>>;
@group(0) @binding(16) var<storage, read_write> y_quads: array<vec4<f32>>;

fn load_x(token: u32, quad: u32) -> vec4<f32> {
    return x_quads[(projection.x_offset + token * projection.x_row) / 4u + quad];
}

fn load_w(input: u32, quad: u32) -> vec4<f32> {
    return w_quads[(projection.w_offset + input * projection.w_row) / 4u + quad];
}

fn store_y(token: u32, quad: u32, value: vec4<f32>) {
    y_quads[(projection.y_offset + token * projection.y_row) / 4u + quad] = value;
}
