// The program's own pass before attention: one packed row a token out of three tensors.
//
//     qkv[token, part, column] = part[token, column]
//
// One invocation an element of qkv, [token, 3, head, dim].

struct Sizes {
    tokens: u32,
    columns: u32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read> k: array<f32>;
@group(0) @binding(3) var<storage, read> v: array<f32>;
@group(0) @binding(4) var<storage, read_write> qkv: array<f32>;

@compute @workgroup_size(64)
fn pack(@builtin(global_invocation_id) id: vec3u) {
    let part = id.x / sizes.columns % 3u;
    let token = id.x / sizes.columns / 3u;
    if token >= sizes.tokens {
        return;
    }
    let at = token * sizes.columns + id.x % sizes.columns;
    switch part {
        case 0u: { qkv[id.x] = q[at]; }
        case 1u: { qkv[id.x] = k[at]; }
        default: { qkv[id.x] = v[at]; }
    }
}
