// One row a lane.

const LANE_ROWS = 1u;

alias RowFloat = f32;         // a number of each row
alias RowQuads = vec4<f32>;   // a quad of each row

alias RowBits = u32;

alias LaneRows = Row;

fn lane_rows(here: Place, first: u32) -> LaneRows {
    return one_row(here, first);
}

fn load_rows(here: Place, rows: LaneRows, quad: u32) -> RowQuads {
    let start = row_start(problem.q, here.sequence.batch, rows.head, rows.token);
    return problem.scale * load_q(start, quad);
}

fn dots(k: vec4<f32>, q: RowQuads) -> RowFloat {
    return dot(k, q);
}

fn outer(p: RowFloat, v: vec4<f32>) -> RowQuads {
    return p * v;
}

fn outer_seen(p: RowFloat, v: vec4<f32>) -> RowQuads {
    return p * if_seen(v, p);
}

fn scaled(alpha: RowFloat, o: RowQuads) -> RowQuads {
    return alpha * o;
}

fn weights(s: RowFloat, m: RowFloat) -> RowFloat {
    return select(exp(s - m), 0.0, s <= LOWEST);
}

// A bit for each key of a tile that a row sees.
fn lane_sight(here: Place, rows: LaneRows, first: u32, end: u32) -> RowBits {
    return row_sight(here, rows, first, end);
}

fn some_seen(seen: RowBits) -> bool {
    return seen != 0u;
}

// Of one key, seen by the row if its `bits` are not 0.
fn lane_scores(here: Place, rows: LaneRows, key: u32, bits: RowBits, s: RowFloat) -> RowFloat {
    return score_if_seen(here, rows, key, bits != 0u, s);
}

fn put_rows(here: Place, first: u32, column: u32, o: RowQuads, m: RowFloat, l: RowFloat) {
    put(here, first, column, o, m, l);
}
