// Products of f16 matrices, summed in f32: four sums a subgroup, none of which waits for another.
//
//   Prologue   enables; alias Left, Right, Sum: cooperative matrices; const SIDE
//   Workgroup  128 invocations: subgroups of any size up to that
//   Memory     factors: [SIDE, SIDE] of f16; sums: [4, SIDE, SIDE] of f32, written over and over;
//              subgroups: how many a workgroup has
//   Grid       x: any

@group(0) @binding(0) var<storage, read> factors: array<f16>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> subgroups: array<u32>;

@compute @workgroup_size(128)
fn matrix(
    @builtin(local_invocation_index) lane: u32,
    @builtin(num_subgroups) count: u32,
) {
    let left = coopLoad<Left>(&factors[0], SIDE);
    let right = coopLoad<Right>(&factors[0], SIDE);
    var c0 = coopLoad<Sum>(&sums[0], SIDE);
    var c1 = coopLoad<Sum>(&sums[SIDE * SIDE], SIDE);
    var c2 = coopLoad<Sum>(&sums[2u * SIDE * SIDE], SIDE);
    var c3 = coopLoad<Sum>(&sums[3u * SIDE * SIDE], SIDE);
    for (var i = 0u; i < 256u; i++) {
        c0 = coopMultiplyAdd(left, right, c0);
        c1 = coopMultiplyAdd(left, right, c1);
        c2 = coopMultiplyAdd(left, right, c2);
        c3 = coopMultiplyAdd(left, right, c3);
    }
    coopStore(c0, &sums[0], SIDE);
    coopStore(c1, &sums[SIDE * SIDE], SIDE);
    coopStore(c2, &sums[2u * SIDE * SIDE], SIDE);
    coopStore(c3, &sums[3u * SIDE * SIDE], SIDE);
    if (lane == 0u) {
        subgroups[0] = count;
    }
}
