// c = c a + b in registers, twelve chains of Number an invocation, none of which waits for another.
//
//   Prologue   alias Number = f32; or enable f16; alias Number = f16;
//   Workgroup  64 invocations
//   Memory     sums: [invocation], so that nothing is left out
//   Grid       x: any

@group(0) @binding(0) var<storage, read_write> sums: array<vec4<Number>>;

@compute @workgroup_size(64)
fn multiply_adds(@builtin(global_invocation_id) id: vec3<u32>) {
    // a < 1 and b > 0: the chains stay finite and normal, and no compiler knows where they end.
    let a = vec4(Number(0.5 + 1e-8 * f32(id.x)));
    let b = vec4(Number(1e-3 * f32((id.x & 1023u) + 1u)));
    var c0 = b + Number(1.0); var c1 = b + Number(2.0); var c2 = b + Number(3.0);
    for (var i = 0u; i < 2048u; i++) {
        c0 = c0 * a + b; c1 = c1 * a + b; c2 = c2 * a + b;
        c0 = c0 * a + b; c1 = c1 * a + b; c2 = c2 * a + b;
        c0 = c0 * a + b; c1 = c1 * a + b; c2 = c2 * a + b;
        c0 = c0 * a + b; c1 = c1 * a + b; c2 = c2 * a + b;
    }
    sums[id.x] = c0 + c1 + c2;
}
