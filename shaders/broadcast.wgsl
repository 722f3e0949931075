// Fused attention of rows held by lanes: the lanes of a subgroup load a row of K or V together, once
// for all their query rows, and each takes its quads from the others.
//
//     S = scale Q K^T + bias            scores of a tile of keys
//     m' = max(m, rowmax S)             running maximum
//     P = unit exp(S - m')              unnormalised weights, 0 where excluded; unit: weight_unit()
//     l = exp(m - m') l + rowsum P      running sum
//     O = exp(m - m') O + P V           running output; O / l at the end
//
// Workgroup: one subgroup of SUBGROUP_SIZE: TILE_QUERIES rows of one kv head, and the keys of one split.
// Thread:    LANE_ROWS whole rows, LANE_ROWS x ..
// Memory:    registers only; no barriers.
// Grid:      one workgroup per place(); splits outermost.
// Twin:      cpu/flash.rs, sweep()
//
// Software adapters run every loop's body once more after its last trip, with all lanes off, unless
// the loop ends behind its body; and code that outgrows the processor's instruction cache is slow:
// hence `loop .. break if`, and bodies of one key of K and a few of V.
//
// Proof (compiled without runtime checks). Loads: query tokens are clamped below q_len, keys below
// key_span's end <= keys of the sequence, whose tokens lie below kv_len; quads are clamped below
// HEAD_QUADS or VALUE_QUADS; key_score.wgsl clamps the tokens of bias and mask. Stores: put() tests its
// row and quad. Loops: all counters rise by a constant to a bound fixed before the loop. Shuffles: in
// uniform control flow, as only workgroup, uniforms and tables decide on the loops around them, from
// lanes below SUBGROUP_SIZE.

const HEAD_PARTS = (HEAD_QUADS + SUBGROUP_SIZE - 1u) / SUBGROUP_SIZE;
const VALUE_PARTS = (VALUE_QUADS + SUBGROUP_SIZE - 1u) / SUBGROUP_SIZE;
// keys of V in one body
const VALUE_TRIP = min(4u, 8u / LANE_ROWS);

@compute @workgroup_size(SUBGROUP_SIZE)
fn broadcast(
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) size: vec3<u32>,
) {
    let group = linear_group(id, size);
    if (group >= problem.groups) {
        return;
    }
    let here = place(group);
    if (is_empty_split(here)) {
        return;
    }
    let span = key_span(here);
    let unit = weight_unit(here);
    let all_rows = first_rows(here);
    let rows = lane_rows(here, LANE_ROWS * lane);
    var q: array<RowQuads, HEAD_QUADS>;
    for (var c = 0u; c < HEAD_QUADS; c++) {
        q[c] = load_rows(here, rows, c);
    }
    var o: array<RowQuads, VALUE_QUADS>;
    var m = RowFloat(LOWEST);
    var l = RowFloat(0.0);

    var any_wild = false;
    var first = span.x;
    if (first < span.y) {
        loop {
            // a tile without any key to see is passed over
            var seen: RowBits;
            if (HAS_MASK) {
                var found = false;
                loop {
                    seen = lane_sight(here, rows, first, span.y);
                    found = subgroupAny(some_seen(seen)) || first + TILE_KEYS >= span.y;
                    first = select(first + TILE_KEYS, first, found);
                    continuing {
                        break if found;
                    }
                }
            } else {
                seen = lane_sight(here, rows, first, span.y);
            }
            let last = span.y - 1u - first;
            let tile = tile_rows(all_rows, first, span.y - 1u, lane);

            // S = scale Q K^T + bias
            var s: array<RowFloat, TILE_KEYS>;
            var t = 0u;
            loop {
                let row = tile_k_row(tile, min(t, last));
                var k: array<vec4<f32>, HEAD_PARTS>;
                for (var part = 0u; part < HEAD_PARTS; part++) {
                    k[part] = raw_k(row, min(part * SUBGROUP_SIZE + lane, HEAD_QUADS - 1u));
                }
                var dot = RowFloat(0.0);
                for (var c = 0u; c < HEAD_QUADS; c++) {
                    dot += dots(subgroupShuffle(k[c / SUBGROUP_SIZE], c % SUBGROUP_SIZE), q[c]);
                }
                let score = lane_scores(here, rows, first + t, seen & RowBits(1u << t), k_scale(row) * dot);
                for (var u = 0u; u < TILE_KEYS; u++) {
                    s[u] = select(s[u], score, u == t);
                }
                continuing {
                    t += 1u;
                    break if t >= TILE_KEYS;
                }
            }

            // m' = max(m, rowmax S)
            var next = m;
            for (var u = 0u; u < TILE_KEYS; u++) {
                next = max(next, s[u]);
            }

            // P = unit exp(S - m'), l = exp(m - m') l + rowsum P
            let alpha = exp(m - next);
            m = next;
            // a tile's sum by itself: adding each to l would lose digits of long rows
            var sum = RowFloat(0.0);
            for (var u = 0u; u < TILE_KEYS; u++) {
                s[u] = unit * weights(s[u], m);
                sum += s[u];
            }
            l = l * alpha + sum;

            // O = exp(m - m') O + P V
            for (var c = 0u; c < VALUE_QUADS; c++) {
                o[c] = scaled(alpha, o[c]);
            }
            t = 0u;
            loop {
                var v: array<vec4<f32>, VALUE_TRIP * VALUE_PARTS>;
                var p: array<RowFloat, VALUE_TRIP>;
                for (var j = 0u; j < VALUE_TRIP; j++) {
                    let row = tile_v_row(tile, min(t + j, last));
                    for (var part = 0u; part < VALUE_PARTS; part++) {
                        let x = raw_v(row, min(part * SUBGROUP_SIZE + lane, VALUE_QUADS - 1u));
                        any_wild = any_wild || is_wild(x);
                        v[j * VALUE_PARTS + part] = tame(x, t + j <= last);
                    }
                    var weight = RowFloat(0.0);
                    for (var u = 0u; u < TILE_KEYS; u++) {
                        weight = select(weight, s[u], u == t + j);
                    }
                    // an excluded key's scale may be infinite
                    p[j] = select(RowFloat(0.0), weight * v_scale(row), weight != RowFloat(0.0));
                }
                for (var c = 0u; c < VALUE_QUADS; c++) {
                    var mixed = o[c];
                    for (var j = 0u; j < VALUE_TRIP; j++) {
                        let x = v[j * VALUE_PARTS + c / SUBGROUP_SIZE];
                        mixed += outer(p[j], subgroupShuffle(x, c % SUBGROUP_SIZE));
                    }
                    o[c] = mixed;
                }
                continuing {
                    t += VALUE_TRIP;
                    break if t >= TILE_KEYS;
                }
            }
            continuing {
                first += TILE_KEYS;
                break if first >= span.y;
            }
        }
    }

    // O + what is not finite, where it is seen
    if (HIDES_KEYS && subgroupAny(any_wild)) {
        var key = span.x;
        loop {
            let seen = lane_sight(here, rows, key, span.y) & RowBits(1u);
            let score = lane_scores(here, rows, key, seen, RowFloat(0.0));
            let p = select(RowFloat(0.0), RowFloat(1.0), score > RowFloat(LOWEST));
            let row = tile_v_row(tile_rows(all_rows, key, span.y - 1u, lane), 0u);
            var v: array<vec4<f32>, VALUE_PARTS>;
            for (var part = 0u; part < VALUE_PARTS; part++) {
                let quad = min(part * SUBGROUP_SIZE + lane, VALUE_QUADS - 1u);
                v[part] = wild_part(raw_v(row, quad));
            }
            for (var c = 0u; c < VALUE_QUADS; c++) {
                let x = subgroupShuffle(v[c / SUBGROUP_SIZE], c % SUBGROUP_SIZE);
                o[c] += outer_seen(p, x);
            }
            continuing {
                key += 1u;
                break if key >= span.y;
            }
        }
    }
    for (var c = 0u; c < VALUE_QUADS; c++) {
        put_rows(here, LANE_ROWS * lane, c, o[c], m, l);
    }
}
