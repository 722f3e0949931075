//! Operands without elements: legal, whatever buffers stand for them.

use wgpu_attention::{BiasLayout, Buffers, Layout, Operand, Problem, Shape};

use crate::program::{Program, USAGE};

const FULL: Shape = Shape { q_len: 3, ..Shape::self_attention(2, 2, 5, 4) };

const EMPTY: [Shape; 5] = [
    Shape { batch: 0, ..FULL },
    Shape { q_len: 0, ..FULL },
    Shape { kv_len: 0, ..FULL },
    Shape { q_len: 0, kv_len: 0, ..FULL },
    // With everything, to see that the others differ.
    FULL,
];

/// Binds zeros, with `spare` bytes of no storage usage where an operand has no elements, and ones
/// in O and LSE; submits, and reads those.
fn run(problem: &Problem, spare: u64) -> [Vec<f32>; 2] {
    let program = Program::shared();
    let plan = program.attention.plan(problem).expect("a plan");
    let buffer = |operand: Operand| {
        let bytes = match operand {
            Operand::Scratch => plan.scratch_bytes(),
            _ => 4 * problem.elements(operand),
        };
        let no_storage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let (bytes, usage) = if bytes == 0 { (spare, no_storage) } else { (bytes, USAGE) };
        (operand, program.empty(bytes, usage))
    };
    let mut operands = vec![Operand::O, Operand::Lse, Operand::Q, Operand::K, Operand::V];
    operands.extend([Operand::Bias, Operand::Scratch]);
    if problem.outputs().scores {
        operands.extend([Operand::Scores, Operand::Weights]);
    }
    let buffers: Vec<_> = operands.into_iter().map(buffer).collect();
    for (_, output) in &buffers[..2] {
        let ones = vec![1.0f32; output.size() as usize / 4];
        program.queue.write_buffer(output, 0, bytemuck::cast_slice(&ones));
    }
    let given = buffers.iter().fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer));
    let bound = plan.bind(given).unwrap_or_else(|error| panic!("{error}: {problem:?}"));
    let has_work = !plan.describe().dispatches.is_empty();
    assert_eq!(has_work, problem.elements(Operand::O) > 0);
    program.submit(|encoder| bound.encode_in(encoder));
    [&buffers[0], &buffers[1]].map(|(_, output)| program.read(output))
}

#[test]
fn operands_without_elements() {
    for shape in EMPTY {
        for stored in [false, true] {
            let problem = Problem::new(shape).lse().bias_shape(&[shape.q_len, shape.kv_len]);
            let problem = if stored { problem.scores().weights() } else { problem };
            for spare in [0, 64] {
                let [o, lse] = run(&problem, spare);
                let name = format!("{shape:?}, stored {stored}, {spare} spare bytes");
                // No rows: untouched. No keys: 0 and -inf. Else the mean of zeros, and ln of 5.
                let (want_o, want_lse) = match (problem.elements(Operand::O), shape.kv_len) {
                    (0, _) => (1.0, 1.0),
                    (_, 0) => (0.0, f32::NEG_INFINITY),
                    _ => (0.0, 5f32.ln()),
                };
                assert!(o.iter().all(|&x| x == want_o), "{name}: {o:?}");
                let near = |x: f32| x == want_lse || (x - want_lse).abs() < 1e-6;
                assert!(lse.iter().all(|&x| near(x)), "{name}: {lse:?}");
            }
        }
    }
}

/// No keys, far into a large buffer: there is no element at the offset to bind.
#[test]
fn operands_without_elements_at_an_offset() {
    let shape = Shape { kv_len: 0, ..FULL };
    let far = |operand: Operand| {
        let tokens = if operand == Operand::Q { shape.q_len } else { shape.kv_len };
        Layout::head_major(shape.q_heads, tokens, 4).at(100_000 + operand as u32)
    };
    // Every one of these has a bias: of no elements, if nothing else is said.
    let plain = Problem::new(shape).lse().bias_shape(&[3, 0]);
    let keys =
        plain.clone().layout(Operand::K, far(Operand::K)).layout(Operand::V, far(Operand::V));
    let bias = BiasLayout { offset: 100_003, query: 9, key: 1, ..Default::default() };
    let rows = plain.clone().bias_shape(&[shape.q_len, 1]);
    for (name, problem) in [
        ("keys", keys.clone()),
        ("bias", plain.bias(bias)),
        ("a bias per row", rows),
        ("all", keys.bias(bias).layout(Operand::Q, far(Operand::Q))),
    ] {
        for problem in [problem.clone(), problem.scores().weights()] {
            for spare in [0, 64] {
                let [o, lse] = run(&problem, spare);
                assert!(o.len() == 48 && o.iter().all(|&x| x == 0.0), "{name}: {o:?}");
                let all = lse.iter().all(|&x| x == f32::NEG_INFINITY);
                assert!(lse.len() == 12 && all, "{name}: {lse:?}");
            }
        }
    }
    // In an arena only Q and O have elements.
    let program = Program::shared();
    let problem = Problem::new(shape).arena().layout(Operand::K, far(Operand::K));
    let problem = problem.layout(Operand::V, far(Operand::V)).bias(bias);
    let problem = problem.layout(Operand::O, Layout::head_major(2, 3, 4).at(48));
    assert_eq!(problem.elements(Operand::Arena), 96);
    let plan = program.attention.plan(&problem).expect("a plan");
    let arena = program.buffer(&[1.0; 96]);
    let bound = plan.bind(Buffers::arena(&arena)).expect("an arena");
    program.submit(|encoder| bound.encode_in(encoder));
    assert_eq!(program.read(&arena), [[1.0; 48], [0.0; 48]].concat());
}
