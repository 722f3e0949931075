//! Lengths and bounds of sequences that a program's own kernel makes, in the submit that attends
//! with them. Whatever it writes, attention stays within its operands.

mod call;

use wgpu_attention::{Attention, Choice, LoopLimit, Method, Operand, Tile};

use crate::program::Program;
use call::{Call, Own, problems};

/// Few enough iterations to split keys after 32 or 64, a search for sequences included.
fn split(program: &Program) -> Attention {
    program.attention.clone().with_loop_limit(LoopLimit::Iterations(350))
}

fn each_kernel(work: impl Fn(&Program, &Call, [Operand; 2], &str)) {
    let program = Program::shared();
    let split = split(program);
    let choices = [Choice::tile(Tile { queries: 32, keys: 32 }), Choice::method(Method::Staged)];
    for (name, problem, tables) in problems() {
        for attention in [&program.attention, &split] {
            for choice in choices {
                let is_split = std::ptr::eq(attention, &split);
                let name = format!("{name}, {:?}, split: {is_split}", choice.method);
                let call = Call::new(program, attention, &problem, choice);
                work(program, &call, tables, &name);
            }
        }
    }
    program.check();
}

/// Tokens of queries and keys, a batch entry or packed sequence each. The first and the last are
/// the same, so that what lies between is seen to leave nothing behind.
const COUNTS: [[[u32; 3]; 2]; 7] = [
    [[20, 30, 40], [50, 70, 30]],
    [[0, 0, 0], [0, 0, 0]],
    [[40, 0, 1], [1, 0, 149]],
    [[0, 33, 32], [32, 33, 85]],
    [[1, 40, 1], [0, 0, 150]],
    [[30, 30, 30], [31, 64, 5]],
    [[20, 30, 40], [50, 70, 30]],
];

/// Where sequences of so many tokens begin, and the last one ends.
fn bounds(counts: [u32; 3]) -> Vec<u32> {
    counts.iter().fold(vec![0], |mut bounds, n| {
        bounds.push(bounds[bounds.len() - 1] + n);
        bounds
    })
}

#[test]
fn a_kernel_of_the_same_submit_makes_them() {
    each_kernel(|program, call, tables, name| {
        let packed = call.problem.table(Operand::QLens).is_none();
        let entry = if packed { "bounds" } else { "lengths" };
        let own = tables.map(|operand| {
            let table = call.problem.table(operand).expect("a table");
            Own::new(program, entry, table, &call.tables)
        });
        for counts in COUNTS {
            let name = format!("{name}, {counts:?}");
            own.iter().zip(&counts).for_each(|(own, counts)| own.fill(program, counts));
            let got = call.submit(program, &[&own[0], &own[1]], &name);
            let tables = counts.map(|c| if packed { bounds(c) } else { c.to_vec() });
            call.check(got, &tables, &name);
        }
    });
}

/// The same Bound again and again, without a kernel: the queue writes what the next submit reads.
#[test]
fn rewritten_between_submits() {
    each_kernel(|program, call, tables, name| {
        let packed = call.problem.table(Operand::QLens).is_none();
        let mut first = None;
        for counts in COUNTS {
            let name = format!("{name}, {counts:?}");
            let words = counts.map(|c| if packed { bounds(c) } else { c.to_vec() });
            for (operand, words) in tables.into_iter().zip(&words) {
                let at = 4 * call.problem.table(operand).expect("a table").start;
                program.queue.write_buffer(&call.tables, at, bytemuck::cast_slice(words));
            }
            let got = call.submit(program, &[], &name);
            call.check(got.clone(), &words, &name);
            first.get_or_insert(got.clone());
            let again = counts == COUNTS[0];
            let bits = |parts: &[Vec<f32>; 2]| {
                parts.concat().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            assert!(!again || first.as_ref().map(bits) == Some(bits(&got)), "{name}: other bits");
        }
    });
}

const M: u32 = u32::MAX;

/// Tables that no one should write, and what they amount to, where that is said: lengths past the
/// capacity are the capacity, and so are bounds; the first query bound is 0.
type Hostile = ([Vec<u32>; 2], Option<[Vec<u32>; 2]>);

fn hostile(packed: bool) -> Vec<Hostile> {
    if !packed {
        let of = |q: [u32; 3], kv: [u32; 3]| [q.to_vec(), kv.to_vec()];
        let full = of([40; 3], [150; 3]);
        return vec![
            (of([M; 3], [M; 3]), Some(full.clone())),
            (of([41; 3], [151; 3]), Some(full.clone())),
            (of([1 << 31; 3], [1 << 30; 3]), Some(full)),
            (of([M, 0, 7], [5, M, M - 1]), Some(of([40, 0, 7], [5, 150, 150]))),
        ];
    }
    let of = |q: [u32; 4], kv: [u32; 4]| [q.to_vec(), kv.to_vec()];
    vec![
        // All past the end.
        (of([M; 4], [M; 4]), Some(of([0, 90, 90, 90], [0; 4]))),
        (of([0, M, M, M], [0, M, M, M]), Some(of([0, 90, 90, 90], [0, 150, 150, 150]))),
        (of([0, 30, 91, 1000], [0, 1, 151, M]), Some(of([0, 30, 90, 90], [0, 1, 150, 150]))),
        // Starting above 0.
        (of([50, 60, 70, 90], [0, 10, 20, 30]), Some(of([0, 60, 70, 90], [0, 10, 20, 30]))),
        (of([M, 60, 70, 90], [0, 10, 20, 30]), Some(of([0, 60, 70, 90], [0, 10, 20, 30]))),
        (of([0, 30, 60, 90], [100, 120, 140, 150]), None),
        // Falling.
        (of([0, 60, 30, 90], [0, 100, 50, 150]), None),
        (of([90, 60, 30, 0], [150, 100, 50, 0]), None),
        (of([0, M, 0, M], [0, M, 0, M]), None),
        (of([M, 0, M, 0], [M, 0, M, 0]), None),
        (of([0, 89, 1, 88], [149, 0, M, 1]), None),
        // A sequence of all keys without queries, and the reverse.
        (of([0, 0, 0, 0], [0, M, M, M]), Some(of([0; 4], [0, 150, 150, 150]))),
        (of([0, M, M, M], [0; 4]), Some(of([0, 90, 90, 90], [0; 4]))),
    ]
}

#[test]
fn hostile_values_are_clamped() {
    each_kernel(|program, call, tables, name| {
        let packed = call.problem.table(Operand::QLens).is_none();
        let own = tables.map(|operand| {
            let table = call.problem.table(operand).expect("a table");
            Own::new(program, "copy", table, &call.tables)
        });
        let both = [&own[0], &own[1]];
        let right = COUNTS[0].map(|c| if packed { bounds(c) } else { c.to_vec() });
        for (values, want) in hostile(packed) {
            let name = format!("{name}, {values:?}");
            own.iter().zip(&values).for_each(|(own, words)| own.write(program, words));
            let got = call.submit(program, &both, &name);
            match want {
                Some(want) => call.check(got, &want, &name),
                None => {
                    let [o, lse] = got;
                    assert!(o.iter().all(|x| x.is_finite()), "{name}: {o:?}");
                    assert!(lse.iter().all(|&x| x < f32::INFINITY), "{name}: {lse:?}");
                }
            }
            own.iter().zip(&right).for_each(|(own, words)| own.write(program, words));
            let got = call.submit(program, &both, &name);
            call.check(got, &right, &format!("after {name}"));
        }
    });
}
