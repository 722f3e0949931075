// Key tokens of a batch entry that may count: those of any packed sequence.

fn held_tokens(batch: u32) -> u32 {
    return problem.kv_len;
}
