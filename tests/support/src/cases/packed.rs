//! Packed sequences: empty ones anywhere, long beside short, room left over.

use wgpu_attention::{Align, Band, Layout, Operand, Problem};

use super::{Case, case, shape};

/// (name, bounds of queries, bounds of keys, capacities).
type Row = (&'static str, &'static [u32], &'static [u32], [u32; 2]);

type Change = fn(Problem) -> Problem;

const ROWS: [Row; 17] = [
    ("one", &[0, 40], &[0, 75], [40, 75]),
    ("three", &[0, 7, 40, 61], &[0, 30, 31, 90], [61, 90]),
    ("first empty", &[0, 0, 20, 40], &[0, 0, 33, 75], [40, 75]),
    ("middle empty", &[0, 20, 20, 40], &[0, 33, 33, 75], [40, 75]),
    ("last empty", &[0, 20, 40, 40], &[0, 33, 75, 75], [40, 75]),
    (
        "several empty",
        &[0, 0, 0, 20, 20, 20, 40, 40, 40],
        &[0, 0, 0, 9, 9, 9, 75, 75, 75],
        [40, 75],
    ),
    ("all empty", &[0, 0, 0, 0], &[0, 0, 0, 0], [40, 75]),
    ("no sequences", &[0], &[0], [40, 75]),
    ("one long, many short", &[0, 1, 3, 90, 91, 94, 95], &[0, 2, 3, 130, 131, 131, 140], [95, 140]),
    ("of one token", &[0, 1, 2, 3, 4, 5], &[0, 1, 2, 3, 4, 5], [5, 5]),
    ("one query each", &[0, 1, 2, 3], &[0, 50, 60, 140], [3, 140]),
    ("room left", &[0, 7, 30], &[0, 20, 60], [90, 140]),
    ("much room left", &[0, 1, 2], &[0, 2, 3], [90, 140]),
    ("queries without keys", &[0, 20, 30, 40], &[0, 0, 0, 75], [40, 75]),
    ("keys without queries", &[0, 0, 0, 40], &[0, 20, 30, 75], [40, 75]),
    ("at tile edges", &[0, 32, 64, 95, 128], &[0, 31, 64, 96, 129], [128, 129]),
    ("past tile edges", &[0, 33, 65, 96, 97], &[0, 33, 65, 97, 129], [97, 129]),
];

pub fn all() -> Vec<Case> {
    let sized = |[q_len, kv_len]: [u32; 2]| Problem::new(shape([1, 4, 2, q_len, kv_len, 8, 8]));
    let of = |&(name, q, kv, room): &Row, how: &str, change: Change| {
        case(format!("packed, {name}{how}"), change(sized(room))).packed(q, kv).poisoned()
    };
    let mut all: Vec<_> = ROWS.iter().map(|row| of(row, "", |p| p)).collect();
    all.extend(
        ROWS.iter().map(|row| of(row, ", bottom-right", |p| p.causal().align(Align::BottomRight))),
    );
    let changes: [(&str, Change); 6] = [
        (", top-left", |p| p.causal().align(Align::TopLeft)),
        (", shift 7", |p| p.causal().align(Align::Shift(7))),
        (", shift -7", |p| p.causal().align(Align::Shift(-7))),
        (", band", |p| p.band(Band { left: Some(9), right: Some(3) }).align(Align::BottomRight)),
        (", left", |p| p.band(Band { left: Some(0), right: None }).align(Align::TopLeft)),
        (", softcap", |p| p.softcap(1.0)),
    ];
    let some = [&ROWS[1], &ROWS[8], &ROWS[11]];
    all.extend(changes.iter().flat_map(|(how, to)| some.map(|row| of(row, how, *to))));
    all.extend([Align::TopLeft, Align::BottomRight, Align::Shift(-5)].map(|align| {
        let (_, q, kv, room) = ROWS[1];
        case(format!("packed, ALiBi, {align:?}"), sized(room).align(align))
            .packed(q, kv)
            .alibi(&[0.5, 0.125, -0.25, 0.0])
            .poisoned()
    }));
    let (_, q, kv, room) = ROWS[8];
    let global = |name: &str, problem: Problem| {
        case(format!("packed, {name}"), problem).packed(q, kv).poisoned()
    };
    let odd = || Problem::new(shape([1, 6, 3, room[0], room[1], 6, 10]));
    all.extend([
        global("mask", sized(room)).masked(&room, |i, j| (i + j) % 3 != 0),
        global("mask of keys", sized(room)).masked(&room[1..], |_, j| j % 3 != 0),
        Case { excluded: 5, ..global("bias", sized(room).bias_shape(&room)) },
        Case { excluded: 3, ..global("bias of keys", sized(room).bias_shape(&room[1..])) },
        global("sinks", sized(room)).sinks(&[1.0, -2.0, 0.0, 5.0]),
        Case {
            excluded: 9,
            ..global("everything", {
                odd()
                    .band(Band { left: Some(40), right: Some(2) })
                    .align(Align::BottomRight)
                    .softcap(4.0)
                    .scale(-0.7)
                    .bias_shape(&[6, room[0], room[1]])
            })
        }
        .masked(&[1, 1, room[0], room[1]], |i, j| (2 * i + j) % 7 != 0)
        .alibi(&[0.3, -0.1])
        .sinks(&[0.4, -0.4, 2.0]),
        Case {
            poisoned: false,
            ..global(
                "token-major",
                [
                    (Operand::Q, 4, 95),
                    (Operand::K, 2, 140),
                    (Operand::V, 2, 140),
                    (Operand::O, 4, 95),
                ]
                .into_iter()
                .fold(sized(room), |problem, (operand, heads, tokens)| {
                    problem.layout(operand, Layout::token_major(heads, tokens, 8))
                }),
            )
        },
    ]);
    all
}
