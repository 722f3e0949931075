// Rows of operands, and workgroups, by their numbers.

// Strides of an operand [batch, head, token, dim] in elements.
struct Strides {
    offset: u32,
    batch: u32,
    head: u32,
    token: u32,
}

fn row_start(at: Strides, batch: u32, head: u32, token: u32) -> u32 {
    return at.offset + batch * at.batch + head * at.head + token * at.token;
}

// Grids beyond the limit of one dimension are folded into three.
fn linear_group(id: vec3<u32>, size: vec3<u32>) -> u32 {
    return id.x + size.x * (id.y + size.y * id.z);
}
