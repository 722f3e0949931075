// The program's own pass before attention: queries, keys and values of every token at once.
//
//     qkv[token, column] = sum over d of x[token, d] w[d, column]
//
// One invocation an element of qkv, [token, 3, head, dim].

struct Sizes {
    tokens: u32,
    d_model: u32,
    columns: u32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<f32>;
@group(0) @binding(3) var<storage, read_write> qkv: array<f32>;

@compute @workgroup_size(64)
fn project(@builtin(global_invocation_id) id: vec3u) {
    let token = id.x / sizes.columns;
    let column = id.x % sizes.columns;
    if token >= sizes.tokens {
        return;
    }
    var sum = 0.0;
    for (var d = 0u; d < sizes.d_model; d++) {
        sum += x[token * sizes.d_model + d] * w[d * sizes.columns + column];
    }
    qkv[id.x] = sum;
}
