// Reads a large buffer once: lanes side by side, each 32 quads far apart.
//
//   Workgroup  256 invocations
//   Memory     data: [32, invocation] quads of f32; sums: [invocation] of f32
//   Grid       x: an invocation for each 32 quads

@group(0) @binding(0) var<storage, read> data: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(256)
fn bandwidth(
    @builtin(global_invocation_id) place: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let id = place.x;
    let stride = 256u * groups.x;
    // Four sums, so that loads need not wait for each other.
    var s0 = vec4(0.0); var s1 = vec4(0.0); var s2 = vec4(0.0); var s3 = vec4(0.0);
    for (var i = 0u; i < 32u; i += 4u) {
        let at = i * stride + id;
        s0 += data[at];
        s1 += data[at + stride];
        s2 += data[at + 2u * stride];
        s3 += data[at + 3u * stride];
    }
    let s = (s0 + s1) + (s2 + s3);
    sums[id] = (s.x + s.y) + (s.z + s.w);
}
