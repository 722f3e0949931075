// Two rows a lane.

const LANE_ROWS = 2u;

alias RowFloat = vec2<f32>;     // a number of each row
alias RowQuads = mat2x4<f32>;   // a quad of each row

alias RowBits = vec2<u32>;

struct LaneRows {
    a: Row,
    b: Row,
}

fn lane_rows(here: Place, first: u32) -> LaneRows {
    return LaneRows(one_row(here, first), one_row(here, first + 1u));
}

fn load_rows(here: Place, rows: LaneRows, quad: u32) -> RowQuads {
    let a = row_start(problem.q, here.sequence.batch, rows.a.head, rows.a.token);
    let b = row_start(problem.q, here.sequence.batch, rows.b.head, rows.b.token);
    return problem.scale * mat2x4(load_q(a, quad), load_q(b, quad));
}

// A bit for each key of a tile that a row sees.
fn lane_sight(here: Place, rows: LaneRows, first: u32, end: u32) -> RowBits {
    return vec2(
        row_sight(here, rows.a, first, end),
        row_sight(here, rows.b, first, end),
    );
}

fn some_seen(seen: RowBits) -> bool {
    return any(seen != vec2(0u));
}

// Of one key, seen by the rows whose `bits` are not 0.
fn lane_scores(here: Place, rows: LaneRows, key: u32, bits: RowBits, s: RowFloat) -> RowFloat {
    return vec2(
        score_if_seen(here, rows.a, key, bits.x != 0u, s.x),
        score_if_seen(here, rows.b, key, bits.y != 0u, s.y),
    );
}

fn dots(k: vec4<f32>, q: RowQuads) -> RowFloat {
    return k * q;
}

fn outer(p: RowFloat, v: vec4<f32>) -> RowQuads {
    return mat2x4(p.x * v, p.y * v);
}

fn outer_seen(p: RowFloat, v: vec4<f32>) -> RowQuads {
    return mat2x4(p.x * if_seen(v, p.x), p.y * if_seen(v, p.y));
}

fn scaled(alpha: RowFloat, o: RowQuads) -> RowQuads {
    return mat2x4(alpha.x * o[0], alpha.y * o[1]);
}

fn weights(s: RowFloat, m: RowFloat) -> RowFloat {
    return select(exp(s - m), vec2(0.0), s <= vec2(LOWEST));
}

fn put_rows(here: Place, first: u32, column: u32, o: RowQuads, m: RowFloat, l: RowFloat) {
    put(here, first, column, o[0], m.x, l.x);
    put(here, first + 1u, column, o[1], m.y, l.y);
}
