// New queries, turned by the positions that their tokens are about to have in a cache.
//
// Workgroup: CACHE_THREADS quads of new rows.
// Thread:    one quad.
// Memory:    none shared.
// Grid:      quads of a row, then tokens, then heads, then sequences.
// Twin:      cpu/cache.rs, turn()
//
// Proof: `item` is tested against all there are, so batch, head and token lie within the operands that
// Append::validate checks; dims are clamped below HEAD_DIM; store_o() writes no element past a row.

fn new_q(row: u32, dim: u32, position: u32) -> f32 {
    let at = min(dim, HEAD_DIM - 1u);
    return turned(q_at(row + at), q_at(row + partner(at)), at, position);
}

@compute @workgroup_size(CACHE_THREADS)
fn rotate(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let item = linear_group(id, size) * CACHE_THREADS + local;
    let quad = item % HEAD_QUADS;
    let token = item / HEAD_QUADS % problem.q_len;
    let head = item / HEAD_QUADS / problem.q_len % problem.q_heads;
    let sequence = item / HEAD_QUADS / problem.q_len / problem.q_heads;
    if (sequence >= cache.sequences) {
        return;
    }
    let position = words[sequence] + token;
    let row = row_start(problem.q, sequence, head, token);
    let dim = 4u * quad;
    let q = vec4(
        new_q(row, dim, position),
        new_q(row, dim + 1u, position),
        new_q(row, dim + 2u, position),
        new_q(row, dim + 3u, position),
    );
    store_o(row_start(problem.o, sequence, head, token), quad, q);
}
