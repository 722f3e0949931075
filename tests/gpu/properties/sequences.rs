//! A sequence is what it is alone: packed, cut short by its length, beside others.

use std::ops::Range;

use wgpu_attention::{Align, Band, Choice, Gpu, Inputs, Output, Problem, Shape};

use crate::checks::{
    Checked, EVERYTHING, FLASH, LSE, NOTHING, STAGED, Wants, answer, each, limited, split_gpu,
};
use crate::support::{Data, default_limits_gpu, gpu, max_error};
use wgpu_attention_support::answers::TILE;
use wgpu_attention_support::cases::{Case, case};

const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const ROW: usize = 8;

/// Some of a tensor's tokens, of every head; `row` numbers each.
fn part(x: &[f32], [tokens, row]: [usize; 2], some: Range<u32>) -> Vec<f32> {
    let heads = x.chunks(tokens * row);
    let of = |head: &[f32]| head[row * some.start as usize..row * some.end as usize].to_vec();
    heads.flat_map(of).collect()
}

type Options = fn(Problem) -> Problem;

const OPTIONS: [(&str, Options); 4] = [
    ("open", |problem| problem),
    ("causal", |problem| problem.causal().align(Align::BottomRight)),
    ("band", |problem| problem.band(Band { left: Some(9), right: Some(40) }).align(Align::TopLeft)),
    ("softcap", |problem| problem.softcap(2.0)),
];

/// [batch, 4 or 2 heads, tokens, 8].
fn of(batch: u32, q_len: u32, kv_len: u32) -> Problem {
    let shape = Shape::self_attention(batch, HEADS as u32, q_len, ROW as u32);
    Problem::new(shape.kv_heads(KV_HEADS as u32).kv_len(kv_len))
}

/// O and LSE.
fn bits(output: &Output) -> Vec<u32> {
    let lse = output.lse.iter().flatten();
    output.o.iter().chain(lse).map(|x| x.to_bits()).collect()
}

fn pairs(bounds: &[u32]) -> impl Iterator<Item = Range<u32>> + '_ {
    bounds.windows(2).map(|pair| pair[0]..pair[1])
}

/// A packed sequence gives what a call of its own gives; where tiles and splits are the same, the
/// same bits.
#[test]
fn packed_sequences_equal_calls_of_their_own() {
    let (q, kv) = ([0, 7, 7, 61, 94], [0, 30, 45, 46, 140]);
    let same_bits = [
        ("fused", gpu(), Choice::tile(TILE)),
        ("fused, default limits", default_limits_gpu(), Choice::tile(TILE)),
        ("fused, split", &limited(400), Choice::tile(TILE)),
    ];
    for (name, options) in OPTIONS {
        let packed = case("packed", options(of(1, 94, 140))).packed(&q, &kv);
        let whole = Checked::new(packed);
        let (want, [tolerance, lse_tolerance, ..]) = (&whole.reference, whole.tolerance);
        let of_own = |q: Range<u32>, kv: Range<u32>| {
            let problem = options(of(1, q.end - q.start, kv.end - kv.start));
            let mut data = Data::new(&problem, 0);
            data.q = part(&whole.data.q, [94, ROW], q);
            data.k = part(&whole.data.k, [140, ROW], kv.clone());
            data.v = part(&whole.data.v, [140, ROW], kv);
            (problem, data)
        };
        for (q, kv) in pairs(&q).zip(pairs(&kv)) {
            let (problem, data) = of_own(q.clone(), kv);
            each(&problem, data.inputs(), |kernel, alone| {
                let rows = part(&want.o, [94, ROW], q.clone());
                let error = max_error(&alone.o, &rows) / tolerance;
                assert!(error <= 2.0, "{name}, {kernel}, {q:?}: {error}");
                let rows = part(want.lse.as_ref().expect("wanted"), [94, 1], q.clone());
                let error = max_error(alone.lse.as_ref().expect("wanted"), &rows) / lse_tolerance;
                assert!(error <= 2.0, "{name}, {kernel}, {q:?}: LSE {error}");
            });
        }
        for (kernel, gpu, choice) in same_bits {
            let call = |problem: &Problem, inputs: Inputs<'_>| {
                gpu.attention_with(&LSE(problem.clone()), inputs, choice).expect(kernel)
            };
            let whole_output = call(&whole.case.problem, whole.data.inputs());
            for (q, kv) in pairs(&q).zip(pairs(&kv)) {
                let (problem, data) = of_own(q.clone(), kv);
                let mut rows = whole_output.clone();
                rows.o = part(&rows.o, [94, ROW], q.clone());
                rows.lse = rows.lse.map(|lse| part(&lse, [94, 1], q.clone()));
                let alone = call(&problem, data.inputs());
                assert!(bits(&alone) == bits(&rows), "{name}, {kernel}, {q:?}: other bits");
            }
        }
    }
}

/// A length gives what a call over that many tokens gives: the fused kernels the same bits.
#[test]
fn lengths_equal_slices() {
    let (q_lens, kv_lens) = ([40, 1, 33, 0], [140, 64, 31, 9]);
    for (name, options) in OPTIONS {
        let case = case("lens", options(of(4, 40, 140))).q_lens(&q_lens).kv_lens(&kv_lens);
        let whole = Checked::new(case.poisoned());
        let few = limited(400);
        let kernels: [(&str, &Gpu, Choice, Wants); 4] = [
            ("fused", gpu(), Choice::tile(TILE), LSE),
            ("fused, split", &few, Choice::tile(TILE), LSE),
            ("staged", gpu(), STAGED, LSE),
            ("staged, split", &few, STAGED, LSE),
        ];
        for (kernel, gpu, choice, wants) in kernels {
            let call = |problem: &Problem, inputs: Inputs<'_>| {
                gpu.attention_with(&wants(problem.clone()), inputs, choice).expect(kernel)
            };
            let all = call(&whole.case.problem, whole.data.inputs());
            for (batch, (&q_len, &kv_len)) in q_lens.iter().zip(&kv_lens).enumerate() {
                let entry = |x: &[f32], size: [usize; 2], some: u32| {
                    let one = x.len() / 4;
                    part(&x[batch * one..][..one], size, 0..some)
                };
                let problem = options(of(1, q_len, kv_len));
                let [q, k, v] = [
                    entry(&whole.data.q, [40, ROW], q_len),
                    entry(&whole.data.k, [140, ROW], kv_len),
                    entry(&whole.data.v, [140, ROW], kv_len),
                ];
                let alone = call(&problem, Inputs::new(&q, &k, &v));
                let (o, lse) = (entry(&all.o, [40, ROW], q_len), all.lse.as_ref().expect("wanted"));
                let lse = entry(lse, [40, 1], q_len);
                let label = format!("{name}, {kernel}, entry {batch}");
                if choice == STAGED {
                    let error = max_error(&alone.o, &o) / whole.tolerance[0];
                    assert!(error <= 2.0, "{label}: {error}");
                    let error = max_error(alone.lse.as_ref().unwrap(), &lse) / whole.tolerance[1];
                    assert!(error <= 2.0, "{label}: LSE {error}");
                } else {
                    let mut rows = alone.clone();
                    (rows.o, rows.lse) = (o, Some(lse));
                    assert!(bits(&alone) == bits(&rows), "{label}: other bits");
                }
            }
        }
    }
}

/// Other entries' lengths do not change an entry's bits.
#[test]
fn neighbours_lengths_change_nothing() {
    let problem = of(3, 37, 150).causal().align(Align::BottomRight);
    let of = |q_lens: [u32; 3], kv_lens: [u32; 3]| -> Case {
        case("neighbours", problem.clone()).q_lens(&q_lens).kv_lens(&kv_lens)
    };
    let cases = [
        of([37, 20, 5], [150, 101, 3]),
        of([0, 20, 37], [0, 101, 150]),
        of([1, 20, 2], [99, 101, 0]),
    ];
    let kernels: [(&str, &Gpu, Choice, Wants); 5] = [
        ("fused", gpu(), FLASH, LSE),
        ("fused, split", split_gpu(), Choice::tile(TILE), LSE),
        ("staged", gpu(), STAGED, EVERYTHING),
        ("staged, only O", gpu(), STAGED, NOTHING),
        ("staged, split", split_gpu(), STAGED, LSE),
    ];
    for (name, gpu, choice, wants) in kernels {
        let middle = cases.clone().map(|case| {
            let mut data = Data::new(&problem, 5);
            data.given = case.given;
            let problem = wants(case.problem);
            let output = gpu.attention_with(&problem, data.inputs(), choice).expect(name);
            let entry = |x: &[f32]| x[x.len() / 3..][..x.len() / 3].to_vec();
            let parts = [Some(output.o), output.lse, output.scores, output.weights];
            let bits = |x: Vec<f32>| entry(&x).into_iter().map(f32::to_bits);
            parts.into_iter().flatten().flat_map(bits).collect::<Vec<_>>()
        });
        assert!(middle[0] == middle[1] && middle[0] == middle[2], "{name}: other bits");
    }
}

/// All of a batch's lengths at their capacities are no lengths at all.
#[test]
fn full_lengths_are_none() {
    let plain = of(2, 40, 140).causal().align(Align::BottomRight);
    let data = Data::new(&plain, 6);
    let mut full = data.clone();
    full.given.q_lens = Some(vec![40; 2]);
    full.given.kv_lens = Some(vec![140; 2]);
    let problem = plain.clone().q_lens().kv_lens();
    let mut packed = Data::new(&of(1, 40, 140), 6);
    packed.given.cu_seqlens = Some([vec![0, 40], vec![0, 140]]);
    let one = of(1, 40, 140).causal().align(Align::BottomRight);
    let alone = Data::new(&one, 6);
    for (name, [with, without], [given, none]) in [
        ("lens", [&problem, &plain], [&full, &data]),
        ("packed", [&one.clone().packed(1), &one], [&packed, &alone]),
    ] {
        let tolerance = answer(without, none.inputs()).1[0];
        let mut first = Vec::new();
        each(with, given.inputs(), |_, output| first.push(output.clone()));
        let mut first = first.iter();
        each(without, none.inputs(), |kernel, output| {
            let error = max_error(&first.next().expect("as many").o, &output.o);
            assert!(error <= tolerance, "{name}, {kernel}: {error}");
        });
    }
}
