//! Partial results that do not fit at once are made in several rounds: the same bits as in one.

use wgpu_attention::{Choice, Gpu, Method, Output, Problem, Shape, Tile};

use crate::program::{FEW, Program};
use crate::support::Data;

/// On a device whose largest buffer has `bytes`: the output, and how many dispatches made it.
fn run(bytes: u64, problem: &Problem, choice: Choice) -> (Output, usize) {
    let limits = wgpu::Limits {
        max_buffer_size: bytes,
        max_storage_buffer_binding_size: bytes,
        ..wgpu::Limits::default()
    };
    let program = Program::shared().neighbour(limits);
    let attention = program.attention.clone().with_loop_limit(FEW);
    let plan = attention.plan_with(problem, choice).expect("a plan");
    assert!(plan.scratch_bytes() <= bytes);
    let dispatches = plan.describe().dispatches.iter().filter(|d| d.kernel == "merge").count();
    let gpu = Gpu::from_device(program.device.clone(), program.queue.clone());
    let data = Data::new(problem, 5);
    let output = gpu.with_attention(attention).attention_with(problem, data.inputs(), choice);
    program.check();
    (output.expect("an answer"), dispatches)
}

#[test]
fn rounds_change_no_bit() {
    let problem = Problem::new(Shape::self_attention(1, 2, 90, 8)).causal().lse();
    // Six tiles, two or three of which find room for their partial results at a time. The staged
    // kernels also store 64,800 bytes of scores.
    for (bytes, choice) in [
        (32 << 10, Choice::tile(Tile { queries: 32, keys: 32 })),
        (96 << 10, Choice::method(Method::Staged)),
    ] {
        let (want, one) = run(128 << 20, &problem, choice);
        let (got, rounds) = run(bytes, &problem, choice);
        println!("{choice:?}: {rounds} rounds of {bytes} B");
        assert_eq!(one, 1, "{choice:?}");
        assert!(rounds >= 2, "{choice:?}: {rounds} rounds");
        assert!(got == want, "{choice:?}: other bits");
    }
}
