//! A layer inside another program, on a device with WebGPU's default limits: its buffers, its
//! passes and submits.

use wgpu_attention::{
    Align, Attention, Buffers, Choice, LayerOutput, LoopLimit, Method, MultiHead, MultiHeadPlan,
    Operand, Problem, Shape, Tile, cpu,
};

use super::{TOLERANCE, Tensors, layer_error};
use crate::embedding::pass::Own;
use crate::program::{Program, USAGE};
use crate::support::{max_error, normal};

const SENTINEL: u32 = 0x7fc5_a5a5;
/// Words after the last one that a buffer must have.
const TAIL: u64 = 300;

fn choices() -> [Choice; 2] {
    [Choice::tile(Tile { queries: 32, keys: 32 }), Choice::method(Method::Staged)]
}

/// Loop iterations so few that keys are split after 32 or 64.
fn split(program: &Program) -> Attention {
    program.attention.clone().with_loop_limit(LoopLimit::Iterations(300))
}

fn plan(attention: &Attention, layer: &MultiHead, choice: Choice) -> MultiHeadPlan {
    pollster::block_on(attention.plan_multi_head_async(layer, choice)).expect("a plan")
}

/// Buffers of one layer; those that are written hold sentinels, `tail` of them past the end.
struct Memory {
    buffers: Vec<(Operand, wgpu::Buffer)>,
    tail: u64,
}

impl Memory {
    fn new(
        program: &Program,
        layer: &MultiHead,
        plan: &MultiHeadPlan,
        tensors: &Tensors,
        tail: u64,
    ) -> Memory {
        let filled =
            |words: u64| program.buffer(&vec![f32::from_bits(SENTINEL); (words + tail) as usize]);
        let mut buffers: Vec<_> =
            tensors.given().map(|(operand, x)| (operand, program.buffer(x))).collect();
        let outputs = [Operand::Y, Operand::Lse, Operand::Scores, Operand::Weights];
        let sized = outputs.map(|operand| (operand, layer.elements(operand)));
        buffers.extend(sized.into_iter().filter(|x| x.1 > 0).map(|(o, n)| (o, filled(n))));
        let memory = [
            (Operand::Projected, plan.projected_bytes()),
            (Operand::Scratch, plan.scratch_bytes()),
        ];
        buffers.extend(memory.map(|(operand, bytes)| (operand, filled(bytes / 4))));
        Memory { buffers, tail }
    }

    fn given(&self) -> Buffers<'_> {
        self.buffers.iter().fold(Buffers::default(), |all, (o, buffer)| all.with(*o, buffer))
    }

    fn get(&self, operand: Operand) -> Option<&wgpu::Buffer> {
        self.buffers.iter().find(|b| b.0 == operand).map(|b| &b.1)
    }

    fn write(&self, program: &Program, operand: Operand, x: &[f32]) {
        let buffer = self.get(operand).expect("given");
        program.queue.write_buffer(buffer, 0, bytemuck::cast_slice(x));
    }

    /// An output, once nothing past its end is found changed.
    fn read(&self, program: &Program, operand: Operand) -> Option<Vec<f32>> {
        let mut words = program.read(self.get(operand)?);
        let tail = words.split_off(words.len() - self.tail as usize);
        assert!(tail.iter().all(|x| x.to_bits() == SENTINEL), "{operand}: overrun");
        Some(words)
    }

    /// The largest error of any output.
    fn error(&self, program: &Program, want: &LayerOutput) -> f32 {
        let mut got = want.clone();
        got.y = self.read(program, Operand::Y).expect("wanted");
        got.lse = self.read(program, Operand::Lse);
        got.scores = self.read(program, Operand::Scores);
        got.weights = self.read(program, Operand::Weights);
        layer_error(&got, want)
    }
}

fn layers() -> [(&'static str, MultiHead); 3] {
    let heads = |shape: Shape| Problem::new(shape).align(Align::BottomRight);
    let own = Shape::self_attention(2, 3, 77, 8);
    let cross = Shape { q_len: 40, ..own }.kv_len(90);
    let odd = Shape { q_len: 35, ..own }.kv_heads(1).value_dim(5).kv_len(70);
    [
        ("causal", MultiHead::new(24, heads(own).causal().lse()).residual()),
        ("cross", MultiHead::new(16, heads(cross)).context(20).biases()),
        ("odd", MultiHead::new(17, heads(odd).lse()).context(9).biases().residual()),
    ]
}

/// One pass: the program's kernel makes x, the layer y, another of its kernels takes y. One
/// encoder and one submit a round; bound once.
#[test]
fn one_pass_reused_with_changing_tokens() {
    let program = Program::shared();
    let split = split(program);
    let (mut rounds, mut worst) = (0, 0.0f32);
    for attention in [&program.attention, &split] {
        for (choice, (name, layer)) in choices().into_iter().cycle().zip(layers()) {
            let plan = plan(attention, &layer, choice);
            let is_split = plan.attention().describe().split_keys.is_some();
            assert_eq!(is_split, std::ptr::eq(attention, &split), "{name}");
            let mut tensors = Tensors::new(&layer, 11);
            let memory = Memory::new(program, &layer, &plan, &tensors, 0);
            let [x, y] = [Operand::X, Operand::Y].map(|o| memory.get(o).expect("given"));
            let first = program.empty(x.size(), USAGE);
            let last = program.empty(y.size(), USAGE);
            let before = Own::new(program, "double", &first, x);
            let after = Own::new(program, "add_one", y, &last);
            let bound = plan.bind(memory.given()).expect(name);
            for round in 0..20 {
                let half = normal(tensors.get(Operand::X).len(), 500 + round);
                program.queue.write_buffer(&first, 0, bytemuck::cast_slice(&half));
                program.submit(|encoder| {
                    let mut pass = encoder.begin_compute_pass(&Default::default());
                    before.record(&mut pass);
                    bound.encode(&mut pass);
                    after.record(&mut pass);
                });
                *tensors.get_mut(Operand::X) = half.iter().map(|x| 2.0 * x).collect();
                let want = cpu::multi_head(&layer, tensors.inputs()).expect("cpu");
                let got: Vec<f32> = program.read(&last).iter().map(|y| y - 1.0).collect();
                let error = max_error(&got, &want.y).max(memory.error(program, &want));
                assert!(error <= TOLERANCE, "{name}, round {round}: {error:e}");
                (rounds, worst) = (rounds + 1, worst.max(error));
            }
        }
    }
    println!("{rounds} rounds, worst {worst:e}");
}

/// Working memory of just the size that is asked for is enough, whatever it held; with more, the
/// rest is left alone.
#[test]
fn working_memory_is_stated_exactly() {
    let program = Program::shared();
    let split = split(program);
    for (name, layer) in layers() {
        for choice in choices() {
            let plan = plan(&split, &layer, choice);
            let shape = layer.problem().shape();
            let mixed = u64::from(shape.batch * shape.q_len * shape.q_heads * shape.value_dim);
            let inner = plan.attention().scratch_bytes();
            let outer = (4 * mixed).next_multiple_of(256);
            assert!(plan.attention().describe().split_keys.is_some() && inner > 0, "{name}");
            assert!(plan.scratch_bytes() >= outer + inner, "{name}");
            println!("{name}: {} B projected, {outer} + {inner} B", plan.projected_bytes());
            let tensors = Tensors::new(&layer, 21);
            let want = cpu::multi_head(&layer, tensors.inputs()).expect("cpu");
            for tail in [0, TAIL] {
                let memory = Memory::new(program, &layer, &plan, &tensors, tail);
                let bound = plan.bind(memory.given()).expect(name);
                program.submit(|encoder| bound.encode_in(encoder));
                let error = memory.error(program, &want);
                assert!(error <= TOLERANCE, "{name}, {choice:?}: {error:e}");
                memory.read(program, Operand::Projected);
                memory.read(program, Operand::Scratch);
            }
        }
    }
}

/// The first `count` of `capacity` rows of each of the batch's blocks.
fn first(x: &[f32], batch: u32, capacity: u32, count: u32) -> Vec<f32> {
    let row = x.len() / (batch * capacity) as usize;
    let blocks = x.chunks(row * capacity as usize);
    blocks.flat_map(|block| &block[..row * count as usize]).copied().collect()
}

/// Lengths that change between submits. Rows of y past q_len are b_O (and x).
#[test]
fn lengths_change_between_submits() {
    let program = Program::shared();
    let split = split(program);
    let mut ran = 0;
    for attention in [&program.attention, &split] {
        for (name, layer) in layers() {
            for choice in choices() {
                ran += follow(program, &layer, &plan(attention, &layer, choice), name);
            }
        }
    }
    println!("{ran} lengths");
}

fn follow(program: &Program, layer: &MultiHead, plan: &MultiHeadPlan, name: &str) -> u32 {
    let capacity = layer.problem().shape();
    let Shape { batch, .. } = capacity;
    let mut tensors = Tensors::new(layer, 31);
    let memory = Memory::new(program, layer, plan, &tensors, 0);
    let bound = plan.bind(memory.given()).expect(name);
    let whole = tensors.get(Operand::X).to_vec();
    let row = whole.len() / (batch * capacity.q_len) as usize;
    let context = tensors.get(Operand::Context).to_vec();
    let lengths = match tensors.has_context {
        true => {
            vec![(33, 65), (0, 0), (1, 70), (35, 0), (17, 3), (capacity.q_len, capacity.kv_len)]
        }
        false => vec![(64, 64), (0, 0), (1, 1), (33, 33), (77, 77)],
    };
    let has_residual = layer.clone().residual() == *layer;
    for &(q_len, kv_len) in &lengths {
        let name = format!("{name}: {q_len}, {kv_len}");
        bound.set_lengths(&program.queue, q_len, kv_len).expect(&name);
        if tensors.has_context {
            // Tokens that do not exist are not finite.
            let mut there = vec![f32::NAN; context.len()];
            let row = context.len() / (batch * capacity.kv_len) as usize;
            for at in (0..context.len()).filter(|at| (at / row) as u32 % capacity.kv_len < kv_len) {
                there[at] = context[at];
            }
            memory.write(program, Operand::Context, &there);
        }
        program.submit(|encoder| bound.encode_in(encoder));

        // The same by a layer of exactly these lengths.
        let exact = exact(layer, &tensors, Shape { q_len, kv_len, ..capacity });
        *tensors.get_mut(Operand::X) = first(&whole, batch, capacity.q_len, q_len);
        if tensors.has_context {
            *tensors.get_mut(Operand::Context) = first(&context, batch, capacity.kv_len, kv_len);
        }
        let want = cpu::multi_head(&exact, tensors.inputs()).expect(&name);
        let got = memory.read(program, Operand::Y).expect("wanted");
        let error = max_error(&first(&got, batch, capacity.q_len, q_len), &want.y);
        assert!(error <= TOLERANCE, "{name}: {error:e}");
        let b_o = tensors.get(Operand::Bo);
        for (at, y) in got.iter().enumerate() {
            if (at / row) as u32 % capacity.q_len < q_len {
                continue;
            }
            let b_o = b_o.get(at % row).unwrap_or(&0.0);
            let want = b_o + if has_residual { whole[at] } else { 0.0 };
            assert!((y - want).abs() <= 1e-6, "{name}, element {at}: {y}, not {want}");
        }
    }
    lengths.len() as u32
}

/// A layer that differs in its lengths only.
fn exact(layer: &MultiHead, tensors: &Tensors, shape: Shape) -> MultiHead {
    let problem = Problem::new(shape).align(Align::BottomRight);
    let is_causal = *layer.problem() == layer.problem().clone().causal();
    let problem = if is_causal { problem.causal() } else { problem };
    let rows = |operand| tensors.get(operand).len() as u32;
    let d_model = rows(Operand::Wo) / (shape.q_heads * shape.value_dim);
    let mut exact = MultiHead::new(d_model, problem);
    if tensors.has_context {
        exact = exact.context(rows(Operand::Wk) / (shape.kv_heads * shape.head_dim));
    }
    exact = if tensors.has_biases { exact.biases() } else { exact };
    let has_residual = layer.clone().residual() == *layer;
    if has_residual { exact.residual() } else { exact }
}
