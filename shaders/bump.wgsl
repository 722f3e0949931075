// After an append: each sequence is as much longer, and its page copy is done.
//
// Workgroup: CACHE_THREADS sequences.
// Thread:    one sequence.
// Memory:    none shared.
// Grid:      sequences.
// Twin:      cpu/cache.rs, append()
//
// Proof: `sequence` is tested below cache.sequences, for which `words` has all three entries.

@compute @workgroup_size(CACHE_THREADS)
fn bump(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let sequence = linear_group(id, size) * CACHE_THREADS + local;
    if (sequence >= cache.sequences) {
        return;
    }
    let limit = room(sequence);
    let length = min(words[sequence], limit);
    let added = min(words[cache.counts + sequence], problem.kv_len);
    words[sequence] = length + min(added, limit - length);
    words[cache.copies + 2u * sequence] = NO_PAGE;
}
