//! What masks, lengths and bounds of sequences hide may hold anything, in every storage type.

use wgpu_attention::Element::{self, Bf16, F16, F32};
use wgpu_attention::{Output, Problem, Shape, cpu};

use crate::checks::{Checked, EVERYTHING};
use crate::kernels::Walk;
use crate::support::Data;
use wgpu_attention_support::cases::{Case, case};
use wgpu_attention_support::data::rounded;

const POISON: [f32; 5] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 65504.0];

/// A case, where its poison goes, and whether a row of O, `[batch, head, query]` in one, sees it.
struct Hidden {
    case: Case,
    spread: fn(&mut Data, f32),
    sees: fn(usize) -> bool,
}

/// Some rows of 8 of a tensor.
fn fill(x: &mut [f32], poison: f32, is_bad: impl Fn(usize) -> bool) {
    for (row, x) in x.chunks_mut(8).enumerate().filter(|(row, _)| is_bad(*row)) {
        // Not the whole row: a sum of it would be the same for any order.
        x.iter_mut().skip(row % 3).step_by(3).for_each(|x| *x = poison);
    }
}

/// 2 batch entries of 2 heads, or one of 4; 21 queries and 75 keys each.
fn hidden(types: [Element; 2], biased: bool) -> Vec<Hidden> {
    let of = |name: &str, batch: u32| {
        let shape = Shape::self_attention(batch, 4 / batch, 21, 8).kv_len(75);
        let problem = Problem::new(shape);
        let problem = if biased { problem.bias_shape(&[21, 75]) } else { problem };
        case(format!("{name}, {types:?}"), problem).stored_as(types[0], types[1])
    };
    vec![
        Hidden {
            // Keys 20 and 40 are for even rows only, the last tile for nobody.
            case: of("mask", 2)
                .masked(&[21, 75], |i, j| j < 64 && (i % 2 == 0 || (j != 20 && j != 40))),
            spread: |data, poison| {
                let is_bad = |row: usize| [20, 40].contains(&(row % 75)) || row % 75 >= 64;
                fill(&mut data.k, poison, is_bad);
                fill(&mut data.v, poison, is_bad);
                for (at, bias) in data.bias.iter_mut().flatten().enumerate() {
                    let (i, j) = (at / 75, at % 75);
                    if j >= 64 || (i % 2 == 1 && (j == 20 || j == 40)) {
                        *bias = poison;
                    }
                }
            },
            sees: |row| row % 21 % 2 == 0,
        },
        Hidden {
            case: of("lens", 2).q_lens(&[5, 20]).kv_lens(&[0, 33]),
            spread: |data, poison| {
                fill(&mut data.q, poison, |row| row % 21 >= [5, 20][row / 42]);
                fill(&mut data.k, poison, |row| row % 75 >= [0, 33][row / 150]);
                fill(&mut data.v, poison, |row| row % 75 >= [0, 33][row / 150]);
                for (at, bias) in data.bias.iter_mut().flatten().enumerate() {
                    if at / 75 >= 20 || at % 75 >= 33 {
                        *bias = poison;
                    }
                }
            },
            sees: |_| false,
        },
        Hidden {
            // The middle sequence, and what is left over.
            case: of("packed", 1).packed(&[0, 6, 13, 19], &[0, 30, 34, 70]),
            spread: |data, poison| {
                fill(&mut data.q, poison, |row| (6..13).contains(&(row % 21)) || row % 21 >= 19);
                fill(&mut data.k, poison, |row| (30..34).contains(&(row % 75)) || row % 75 >= 70);
                fill(&mut data.v, poison, |row| (30..34).contains(&(row % 75)) || row % 75 >= 70);
                for (at, bias) in data.bias.iter_mut().flatten().enumerate() {
                    let same = |i: usize, j: usize| (i < 6) == (j < 30) && (i >= 13) == (j >= 34);
                    if !same(at / 75, at % 75) || at / 75 >= 19 || at % 75 >= 70 {
                        *bias = poison;
                    }
                }
            },
            sees: |row| (6..13).contains(&(row % 21)),
        },
    ]
}

/// Takes what a row that sees poison gives for right.
fn forgive(got: &mut Output, want: &Output, sees: fn(usize) -> bool) {
    let parts = [
        (Some(&mut got.o), Some(&want.o), 8),
        (got.lse.as_mut(), want.lse.as_ref(), 1),
        (got.scores.as_mut(), want.scores.as_ref(), 75),
        (got.weights.as_mut(), want.weights.as_ref(), 75),
    ];
    for (got, want, row) in parts {
        let (Some(got), Some(want)) = (got, want) else { continue };
        for (at, got) in got.iter_mut().enumerate().filter(|(at, _)| sees(at / row)) {
            *got = want[at];
        }
    }
}

#[test]
fn what_is_hidden_may_be_anything() {
    let mut walk = Walk::in_turn("what is hidden");
    for (types, biased) in [([F32; 2], true), ([F16; 2], false), ([Bf16; 2], false)] {
        // Every way to hide in f32; masks in halves, sequences in bf16.
        let ways = match types[0] {
            F16 => 0..1,
            Bf16 => 2..3,
            _ => 0..3,
        };
        for Hidden { case, spread, sees } in hidden(types, biased).drain(ways) {
            let mut checked = Checked::new(case);
            let clean = checked.data.clone();
            for poison in POISON {
                checked.data = clean.clone();
                spread(&mut checked.data, rounded(poison, types[1]));
                let check = |kernel: &str, problem: &Problem, mut got: Output| {
                    forgive(&mut got, &checked.reference, sees);
                    let error = checked.compare(problem, &got);
                    let name = &checked.case.name;
                    assert!(error <= 1.0, "{name}, {poison}, {kernel}: {error} of what is allowed");
                };
                walk.each(&checked.stored_problem(), |kernel| {
                    let problem = (kernel.wants)(checked.case.problem.clone());
                    let got = checked.run(kernel.gpu(), &problem, kernel.choice());
                    check(kernel.name, &problem, pollster::block_on(got).expect(kernel.name));
                });
                let problem = EVERYTHING(checked.case.problem.clone());
                let got = cpu::attention(&problem, checked.data.inputs()).expect("cpu");
                check("cpu", &problem, got);
            }
        }
    }
}
