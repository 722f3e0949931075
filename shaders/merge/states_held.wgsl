// What is merged: the parts, and last what O and LSE hold.

fn state_count() -> u32 {
    return problem.part_count + 1u;
}

fn state_lse(state: u32, row: Row) -> u32 {
    if (state == problem.part_count) {
        return lse[row_start(problem.lse, row.batch, row.head, row.token)];
    }
    return part_lse(state, row);
}

fn o_at(index: u32) -> f32 {
    return query_element(o_word(index / QUERIES_A_WORD), index);
}

// Four dims of O.
fn state_quad(state: u32, row: Row, dims: vec4<u32>) -> vec4<f32> {
    if (state == problem.part_count) {
        let at = row_start(problem.o, row.batch, row.head, row.token) + dims;
        return vec4(o_at(at.x), o_at(at.y), o_at(at.z), o_at(at.w));
    }
    let at = part_start(state, row) + dims;
    return vec4(part_at(at.x), part_at(at.y), part_at(at.z), part_at(at.w));
}
