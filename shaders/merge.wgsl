// One result from the partial results of all splits of a tile.
//
//     m = max over splits of m_s
//     l = sum of exp(m_s - m) l_s
//     o = sum of exp(m_s - m) o_s       o / l at the end
//
// Workgroup: one tile of rows, all splits.
// Thread:    every MERGE_THREADS-th (row, quad) of the tile.
// Memory:    none shared.
// Grid:      one workgroup per tile of the dispatch.
// Twin:      cpu/flash.rs, merge()
//
// Proof: group < problem.tiles and split < problem.splits, so partial_start() stays below the scratch
// that plan.rs sizes for tiles * splits groups. put() tests its row and quad. Both loops over
// splits and the loop over items rise by a constant to a bound that does not change.

@compute @workgroup_size(MERGE_THREADS)
fn merge(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let group = linear_group(id, size);
    if (group >= problem.tiles) {
        return;
    }
    let here = place(group);
    // splits past the sequence's end left nothing
    let filled = (here.sequence.keys + problem.split_keys - 1u) / problem.split_keys;
    let splits = clamp(filled, 1u, problem.splits);
    for (var item = local; item < TILE_QUERIES * COLUMN_QUADS; item += MERGE_THREADS) {
        let row = item / COLUMN_QUADS;
        let column = item % COLUMN_QUADS;

        // m = max over splits of m_s; an empty split has LOWEST
        var m = LOWEST;
        for (var split = 0u; split < splits; split++) {
            m = max(m, scratch[partial_start(split * problem.tiles + group, row) + COLUMN_QUADS].x);
        }

        // l = sum of exp(m_s - m) l_s, o = sum of exp(m_s - m) o_s
        var l = 0.0;
        var o = vec4(0.0);
        for (var split = 0u; split < splits; split++) {
            let start = partial_start(split * problem.tiles + group, row);
            let part = scratch[start + COLUMN_QUADS];
            if (part.y != 0.0) {
                let weight = exp(part.x - m);
                l += weight * part.y;
                o += weight * scratch[start + column];
            }
        }
        put(here, row, column, o, m, l);
    }
}
