// Rows of K and V, named by their first element: at the problem's strides.

fn k_row(batch: u32, kv_head: u32, token: u32) -> u32 {
    return row_start(problem.k, batch, kv_head, token);
}

fn v_row(batch: u32, kv_head: u32, token: u32) -> u32 {
    return row_start(problem.v, batch, kv_head, token);
}
