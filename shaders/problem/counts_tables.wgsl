// Sequences have lengths of their own, which may come from the GPU.

// Where a table begins that the problem does not have.
const NOWHERE = 0xffffffffu;

fn query_count(batch: u32) -> u32 {
    if (problem.q_lens != NOWHERE) {
        return tables[problem.q_lens + batch];
    }
    return problem.q_len;
}

fn key_count(batch: u32) -> u32 {
    if (problem.kv_lens != NOWHERE) {
        return tables[problem.kv_lens + batch];
    }
    return problem.kv_len;
}
