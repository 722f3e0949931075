// What is merged: the parts. What O and LSE hold does not count.

fn state_count() -> u32 {
    return problem.part_count;
}

fn state_lse(state: u32, row: Row) -> u32 {
    return part_lse(state, row);
}

// Four dims of O.
fn state_quad(state: u32, row: Row, dims: vec4<u32>) -> vec4<f32> {
    let at = part_start(state, row) + dims;
    return vec4(part_at(at.x), part_at(at.y), part_at(at.z), part_at(at.w));
}
