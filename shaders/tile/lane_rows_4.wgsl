// Four rows a lane.

const LANE_ROWS = 4u;

alias RowFloat = vec4<f32>;     // a number of each row
alias RowQuads = mat4x4<f32>;   // a quad of each row

alias RowBits = vec4<u32>;

struct LaneRows {
    a: Row,
    b: Row,
    c: Row,
    d: Row,
}

fn lane_rows(here: Place, first: u32) -> LaneRows {
    return LaneRows(
        one_row(here, first),
        one_row(here, first + 1u),
        one_row(here, first + 2u),
        one_row(here, first + 3u),
    );
}

fn load_rows(here: Place, rows: LaneRows, quad: u32) -> RowQuads {
    let a = row_start(problem.q, here.sequence.batch, rows.a.head, rows.a.token);
    let b = row_start(problem.q, here.sequence.batch, rows.b.head, rows.b.token);
    let c = row_start(problem.q, here.sequence.batch, rows.c.head, rows.c.token);
    let d = row_start(problem.q, here.sequence.batch, rows.d.head, rows.d.token);
    let quads = mat4x4(load_q(a, quad), load_q(b, quad), load_q(c, quad), load_q(d, quad));
    return problem.scale * quads;
}

// A bit for each key of a tile that a row sees.
fn lane_sight(here: Place, rows: LaneRows, first: u32, end: u32) -> RowBits {
    return vec4(
        row_sight(here, rows.a, first, end),
        row_sight(here, rows.b, first, end),
        row_sight(here, rows.c, first, end),
        row_sight(here, rows.d, first, end),
    );
}

fn some_seen(seen: RowBits) -> bool {
    return any(seen != vec4(0u));
}

// Of one key, seen by the rows whose `bits` are not 0.
fn lane_scores(here: Place, rows: LaneRows, key: u32, bits: RowBits, s: RowFloat) -> RowFloat {
    return vec4(
        score_if_seen(here, rows.a, key, bits.x != 0u, s.x),
        score_if_seen(here, rows.b, key, bits.y != 0u, s.y),
        score_if_seen(here, rows.c, key, bits.z != 0u, s.z),
        score_if_seen(here, rows.d, key, bits.w != 0u, s.w),
    );
}

fn dots(k: vec4<f32>, q: RowQuads) -> RowFloat {
    return k * q;
}

fn outer(p: RowFloat, v: vec4<f32>) -> RowQuads {
    return mat4x4(p.x * v, p.y * v, p.z * v, p.w * v);
}

fn outer_seen(p: RowFloat, v: vec4<f32>) -> RowQuads {
    return mat4x4(
        p.x * if_seen(v, p.x),
        p.y * if_seen(v, p.y),
        p.z * if_seen(v, p.z),
        p.w * if_seen(v, p.w),
    );
}

fn scaled(alpha: RowFloat, o: RowQuads) -> RowQuads {
    return mat4x4(alpha.x * o[0], alpha.y * o[1], alpha.z * o[2], alpha.w * o[3]);
}

fn weights(s: RowFloat, m: RowFloat) -> RowFloat {
    return exp_or_zero(s, m);
}

fn put_rows(here: Place, first: u32, column: u32, o: RowQuads, m: RowFloat, l: RowFloat) {
    put(here, first, column, o[0], m.x, l.x);
    put(here, first + 1u, column, o[1], m.y, l.y);
    put(here, first + 2u, column, o[2], m.z, l.z);
    put(here, first + 3u, column, o[3], m.w, l.w);
}
