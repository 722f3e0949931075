//! Operands anywhere in anyone's memory: packed, interleaved, in one arena, far into a large
//! buffer. Around and between them lies a sentinel, a NaN: no kernel may write a word of it, and
//! none that reads it can be right.

use wgpu_attention::{
    Align, Attention, Band, BiasLayout, Buffers, Choice, Inputs, Layout, Method, Operand, Problem,
    Shape,
};

use crate::program::{Program, Reference};
use crate::support::{max_error, normal};

const SENTINEL: u32 = 0x7fc5_a5a5;
/// Words after the last one that a buffer must have.
const TAIL: usize = 300;
const WRITTEN: [Operand; 4] = [Operand::O, Operand::Lse, Operand::Scores, Operand::Weights];

/// Which operands share a buffer.
#[derive(Clone, Copy, PartialEq)]
enum Home {
    /// Each has its own.
    Own,
    /// Q, K and V lie in one, the others in their own.
    Packed,
    /// All in one.
    Arena,
}

struct Case {
    name: &'static str,
    home: Home,
    shape: Shape,
    /// Every operand of the problem has one, so that the CPU takes whole buffers too.
    layouts: Vec<(Operand, Layout)>,
    bias: Option<BiasLayout>,
    /// Anything else about the problem.
    also: fn(Problem) -> Problem,
}

impl Case {
    fn problem(&self) -> Problem {
        let mut problem = (self.also)(Problem::new(self.shape));
        problem = if self.home == Home::Arena { problem.arena() } else { problem };
        problem = self.bias.into_iter().fold(problem, Problem::bias);
        self.layouts.iter().fold(problem, |problem, &(o, layout)| match o {
            Operand::Lse => problem.lse().layout(o, layout),
            Operand::Scores => problem.scores().layout(o, layout),
            Operand::Weights => problem.weights().layout(o, layout),
            _ => problem.layout(o, layout),
        })
    }

    fn operands(&self) -> Vec<Operand> {
        let bias = self.bias.map(|_| Operand::Bias);
        self.layouts.iter().map(|l| l.0).chain(bias).collect()
    }

    /// Which buffer an operand lies in.
    fn buffer(&self, operand: Operand) -> usize {
        match (self.home, operand) {
            (Home::Arena, _) => 0,
            (Home::Packed, Operand::Q | Operand::K | Operand::V) => 0,
            _ => operand as usize,
        }
    }

    /// The indices of an operand's elements, in the order of its axes.
    fn cells(&self, operand: Operand) -> Vec<usize> {
        let s = self.shape;
        let (heads, tokens, inner) = match operand {
            Operand::Q => (s.q_heads, s.q_len, s.head_dim),
            Operand::K => (s.kv_heads, s.kv_len, s.head_dim),
            Operand::V => (s.kv_heads, s.kv_len, s.value_dim),
            Operand::O => (s.q_heads, s.q_len, s.value_dim),
            Operand::Lse => (s.q_heads, s.q_len, 1),
            _ => (s.q_heads, s.q_len, s.kv_len),
        };
        let own = self.layouts.iter().find(|l| l.0 == operand).map(|l| (l.1, 1));
        let bias = self.bias.filter(|_| operand == Operand::Bias);
        let bias = bias.map(|BiasLayout { offset, batch, head, query, key }| {
            (Layout { offset, batch, head, token: query }, key)
        });
        let (at, last) = own.or(bias).expect("a layout");
        let mut cells = Vec::new();
        for b in 0..s.batch {
            for h in 0..heads {
                for t in 0..tokens {
                    let row = at.offset + b * at.batch + h * at.head + t * at.token;
                    cells.extend((0..inner).map(|d| (row + d * last) as usize));
                }
            }
        }
        cells
    }
}

fn cases() -> Vec<Case> {
    use Operand::{K, Lse, O, Q, Scores, V, Weights};
    let head_major = Layout::head_major;
    let grouped = Shape { q_len: 19, ..Shape::self_attention(2, 4, 150, 7) }.kv_heads(2);
    let odd = grouped.value_dim(5);
    let square = Shape::self_attention(2, 3, 77, 7);
    let quads = Shape { q_len: 40, ..Shape::self_attention(2, 3, 100, 8) };
    let packed = |part: u32, parts: u32, s: Shape| {
        let token = parts * s.q_heads * s.head_dim;
        let offset = part * s.q_heads * s.head_dim;
        Layout { offset, batch: s.q_len * token, head: s.head_dim, token }
    };
    let far = 100_003;
    let apart = vec![
        (Q, head_major(4, 19, 7).at(far)),
        (K, Layout::token_major(2, 150, 7).at(123_457)),
        (V, head_major(2, 150, 5).at(7)),
        (O, Layout::token_major(4, 19, 5).at(150_001)),
        (Lse, Layout { offset: 3, batch: 200, head: 21, token: 1 }),
    ];
    // One operand after the other, with odd gaps.
    let in_row = vec![
        (Q, head_major(4, 19, 7).at(far)),
        (O, head_major(4, 19, 5).at(far + 1100)),
        (K, head_major(2, 150, 7).at(far + 2001)),
        (Lse, head_major(4, 19, 1).at(far + 6301)),
        (V, head_major(2, 150, 5).at(far + 6502)),
    ];
    let stored = |layouts: &[(Operand, Layout)]| {
        let scores = (Scores, Layout { offset: 131_001, batch: 13_001, head: 3001, token: 151 });
        let weights = (Weights, Layout { offset: 170_003, batch: 12_000, head: 2870, token: 150 });
        [layouts, &[scores, weights]].concat()
    };
    // [batch, head, token, 5 of O, LSE, gap]
    let beside = vec![
        (Q, head_major(4, 19, 7).at(0)),
        (K, head_major(2, 150, 7).at(1064)),
        (V, head_major(2, 150, 5).at(5264)),
        (O, head_major(4, 19, 7).at(8264)),
        (Lse, head_major(4, 19, 7).at(8269)),
    ];
    let once = |layout: Layout| Layout { batch: 0, ..layout };
    let bias = |offset: u32| BiasLayout { offset, batch: 0, head: 2900, query: 151, key: 1 };
    let causal = |p: Problem| p.causal().align(Align::BottomRight);
    let band = |p: Problem| p.band(Band { left: Some(90), right: Some(3) }).align(Align::Shift(20));
    let plain = |p: Problem| p;
    let case = |name, home, shape, layouts: &[(Operand, Layout)], bias, also| Case {
        name,
        home,
        shape,
        layouts: layouts.to_vec(),
        bias,
        also,
    };
    let qkv = |parts: u32, s: Shape, first: u32| -> Vec<(Operand, Layout)> {
        let all = [Q, K, V, O].into_iter().zip(0..parts.min(4));
        all.map(|(o, part)| (o, packed(part, parts, s)))
            .map(|(o, l)| (o, l.at(l.offset + first)))
            .collect()
    };
    let token_major_o = |s: Shape| vec![(O, Layout::token_major(3, s.q_len, s.head_dim).at(0))];
    let packed_quads = Shape::self_attention(2, 3, 77, 8);
    vec![
        case("far apart", Home::Own, odd, &apart, Some(bias(100_005)), causal),
        case("far apart, stored", Home::Own, odd, &stored(&apart), None, band),
        case(
            "whole quads with gaps",
            Home::Own,
            quads,
            &[
                (Q, Layout { offset: 100_004, batch: 1600, head: 512, token: 12 }),
                (K, Layout { offset: 12, batch: 4000, head: 1204, token: 12 }),
                (V, Layout::token_major(3, 100, 8).at(200_020)),
                (O, Layout { offset: 36, batch: 1720, head: 548, token: 12 }),
            ],
            None,
            causal,
        ),
        case(
            "packed QKV",
            Home::Packed,
            packed_quads,
            &[qkv(3, packed_quads, 0), token_major_o(packed_quads)].concat(),
            None,
            Problem::causal,
        ),
        case(
            "packed QKV, odd",
            Home::Packed,
            square,
            &[qkv(3, square, 11), token_major_o(square)].concat(),
            None,
            plain,
        ),
        case("arena", Home::Arena, odd, &in_row, None, causal),
        case("arena, bias", Home::Arena, odd, &in_row, Some(bias(far + 9601)), causal),
        case("arena, stored", Home::Arena, odd, &stored(&in_row), Some(bias(200_001)), band),
        case(
            "arena, Q, K, V, O per token",
            Home::Arena,
            square,
            &[qkv(4, square, 5), vec![(Lse, head_major(3, 77, 1).at(13_001))]].concat(),
            None,
            Problem::causal,
        ),
        case("arena, LSE beside O", Home::Arena, odd, &beside, None, plain),
        case(
            "arena, one K and V for the batch",
            Home::Arena,
            odd,
            &[
                (Q, head_major(4, 19, 7).at(1)),
                (O, head_major(4, 19, 5).at(1065)),
                (K, once(head_major(2, 150, 7)).at(1900)),
                (V, once(head_major(2, 150, 5)).at(4001)),
                (Lse, head_major(4, 19, 1).at(5502)),
            ],
            Some(BiasLayout { offset: 5700, key: 1, ..Default::default() }),
            plain,
        ),
    ]
}

/// Runs one case on one kernel; `None` if the kernel does not take it.
fn run(case: &Case, program: &Program, attention: &Attention, choice: Choice) -> Option<()> {
    let problem = case.problem();
    let name = format!("{} {:?}", case.name, choice.method);
    let outputs = problem.outputs();
    if choice.method == Some(Method::Flash) && (outputs.scores || outputs.weights) {
        return None;
    }
    let mut images = vec![Vec::new(); 8];
    for operand in case.operands() {
        let image = &mut images[case.buffer(operand)];
        let words = problem.elements(operand) as usize + TAIL;
        image.resize(words.max(image.len()), f32::from_bits(SENTINEL));
    }
    for operand in case.operands().into_iter().filter(|o| !WRITTEN.contains(o)) {
        let cells = case.cells(operand);
        assert_eq!(cells.iter().max().map(|at| at + 1), Some(problem.elements(operand) as usize));
        let image = &mut images[case.buffer(operand)];
        for (at, x) in cells.iter().zip(normal(cells.len(), operand as u64)) {
            image[*at] = x;
        }
    }
    let image = |operand: Operand| &images[case.buffer(operand)][..];
    let inputs = Inputs::new(image(Operand::Q), image(Operand::K), image(Operand::V));
    let inputs = if case.bias.is_some() { inputs.bias(image(Operand::Bias)) } else { inputs };
    let reference = Reference::new(&problem, inputs).unwrap_or_else(|e| panic!("{name}: {e}"));

    let buffers: Vec<_> = images.iter().map(|image| program.buffer(image)).collect();
    let plan = attention.plan_with(&problem, choice).unwrap_or_else(|e| panic!("{name}: {e}"));
    let splits = plan.describe().split_keys.is_some();
    assert!(splits || std::ptr::eq(attention, &program.attention), "{name}: no splits");
    let words = plan.scratch_bytes() as usize / 4;
    let words = if words == 0 { 0 } else { words + TAIL };
    let scratch = program.buffer(&vec![f32::from_bits(SENTINEL); words]);
    let given = match case.home {
        Home::Arena => Buffers::arena(&buffers[0]),
        _ => case.operands().into_iter().fold(Buffers::default(), |given, operand| {
            given.with(operand, &buffers[case.buffer(operand)])
        }),
    };
    let bound = plan.bind(given.with(Operand::Scratch, &scratch));
    let bound = bound.unwrap_or_else(|e| panic!("{name}: {e}"));
    program.submit(|encoder| bound.encode_in(encoder));

    let mut after: Vec<_> = buffers.iter().map(|buffer| program.read(buffer)).collect();
    for operand in case.operands().into_iter().filter(|o| WRITTEN.contains(o)) {
        let want = reference.part(operand).expect("computed");
        let cells = case.cells(operand);
        let of = |image: &[f32]| cells.iter().map(|&at| image[at]).collect::<Vec<_>>();
        let after = &mut after[case.buffer(operand)];
        let (error, most) = (max_error(&of(after), &of(want)), reference.tolerance(operand));
        assert!(error <= most, "{name}: {operand} is off by {error}, allowed {most}");
        cells.iter().for_each(|&at| after[at] = images[case.buffer(operand)][at]);
    }
    // All else is as it was.
    for (at, (after, before)) in after.iter().zip(&images).enumerate() {
        let changed = after.iter().zip(before).position(|(a, b)| a.to_bits() != b.to_bits());
        assert_eq!(changed, None, "{name}: buffer {at} was written outside the outputs");
    }
    let tail = program.read(&scratch);
    let tail = tail.get(plan.scratch_bytes() as usize / 4..).unwrap_or(&[]);
    assert!(tail.iter().all(|x| x.to_bits() == SENTINEL), "{name}: scratch overrun");
    Some(())
}

fn table(attention: &Attention) {
    let (mut ran, mut skipped) = (0, 0);
    for case in cases() {
        for method in [Method::Flash, Method::Staged] {
            match run(&case, Program::shared(), attention, Choice::method(method)) {
                Some(()) => ran += 1,
                None => skipped += 1,
            }
        }
    }
    println!("{ran} cases x kernels, {skipped} skipped (fused kernel, stored scores)");
}

#[test]
fn operands_lie_anywhere() {
    table(&Program::shared().attention);
}

#[test]
#[ignore = "exhaustive"]
fn exhaustive_operands_lie_anywhere_with_splits() {
    table(&Program::shared().split);
}
