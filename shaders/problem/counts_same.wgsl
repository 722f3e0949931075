// No sequence has lengths of its own.

fn query_count(batch: u32) -> u32 {
    return problem.q_len;
}

fn key_count(batch: u32) -> u32 {
    return problem.kv_len;
}
