// Rows of K and V for a workgroup's place.

// Of key `j` of the sequence.
fn key_row(here: Place, j: u32) -> u32 {
    return k_row(here.sequence.batch, here.kv_head, here.sequence.first_key + j);
}

fn value_row(here: Place, j: u32) -> u32 {
    return v_row(here.sequence.batch, here.kv_head, here.sequence.first_key + j);
}
