//! What a call costs beside its arithmetic: recording, beside the same dispatches recorded by hand;
//! planning and binding, all of one query, one key and one head; and a longer call from slices.
//!
//! `recorded` is an encoder with one pass, finished and dropped; `done` is submitted and waited for.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use wgpu_attention::{Buffers, Choice, Gpu, Method, Operand, Problem, Shape};
use wgpu_attention_support::by_hand::ByHand;
use wgpu_attention_support::resident::{Operands, Resident};

fn overhead(criterion: &mut Criterion) {
    let gpu = Gpu::new().unwrap_or_else(|error| panic!("{error}"));
    let problem = Problem::new(Shape::self_attention(1, 1, 1, 64)).lse();
    let plan = |choice| gpu.planner().plan_with(&problem, choice).expect("a plan");
    let storage = |bytes: u64| {
        gpu.device().create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        })
    };
    let row = || storage(problem.bytes(Operand::Q));
    let (q, k, v, o, lse) = (row(), row(), row(), row(), storage(problem.bytes(Operand::Lse)));

    for (name, method) in [("1 dispatch", Method::Flash), ("3 dispatches", Method::Staged)] {
        let plan = plan(Choice::method(method));
        let scratch = storage(plan.scratch_bytes());
        let buffers = Buffers::new(&q, &k, &v, &o).with(Operand::Lse, &lse);
        let buffers = buffers.with(Operand::Scratch, &scratch);
        let bound = plan.bind(buffers).expect("bound");
        let by_hand = ByHand::new(gpu.device(), &plan);
        let ours = |pass: &mut wgpu::ComputePass<'_>| bound.encode(pass);
        let theirs = |pass: &mut wgpu::ComputePass<'_>| by_hand.encode(pass);
        let ratio = interleaved(|| record(&gpu, ours), || record(&gpu, theirs));
        println!("{name}: recording costs {ratio:.2} of recording by hand (median of 501 pairs)");

        let mut group = criterion.benchmark_group(format!("overhead/{name}"));
        group.bench_function("recorded", |b| b.iter(|| record(&gpu, ours)));
        group.bench_function("recorded by hand", |b| b.iter(|| record(&gpu, theirs)));
        group.bench_function("done", |b| b.iter(|| done(&gpu, record(&gpu, ours))));
        group.bench_function("plan again", |b| {
            b.iter(|| gpu.planner().plan_with(&problem, Choice::method(method)).expect("a plan"));
        });
        group.bench_function("bind", |b| b.iter(|| plan.bind(buffers).expect("bound")));
        group.finish();
    }

    // 2 MiB each of Q, K, V and O: the rest of a call from slices beside its kernels.
    let problem = Problem::new(Shape::self_attention(1, 8, 1024, 64));
    let operands = Operands::normal(&problem);
    let plan = gpu.planner().plan(&problem).expect("a plan");
    let resident = Resident::new(&gpu, &plan, operands.inputs()).expect("buffers");
    let slices = || gpu.attention(&problem, operands.inputs()).expect("an output");
    assert_eq!(slices().o, { resident.run().and_then(|()| resident.read()).expect("an output") });
    let mut group = criterion.benchmark_group("overhead/8 heads x 1024 tokens x 64");
    group.sample_size(20);
    group.bench_function("resident", |b| b.iter(|| resident.run().expect("a run")));
    group.bench_function("from slices", |b| b.iter(|| black_box(slices())));
    group.bench_function("from slices, nothing kept", |b| {
        b.iter(|| {
            gpu.trim();
            black_box(slices())
        });
    });
    group.finish();
}

fn record(gpu: &Gpu, encode: impl Fn(&mut wgpu::ComputePass<'_>)) -> wgpu::CommandBuffer {
    let mut encoder = gpu.device().create_command_encoder(&Default::default());
    encode(&mut encoder.begin_compute_pass(&Default::default()));
    encoder.finish()
}

fn done(gpu: &Gpu, commands: wgpu::CommandBuffer) {
    gpu.queue().submit([commands]);
    gpu.device().poll(wgpu::PollType::wait_indefinitely()).expect("a live device");
}

/// The median ratio of the times of two calls made in turn.
fn interleaved<T>(mut ours: impl FnMut() -> T, mut theirs: impl FnMut() -> T) -> f64 {
    let seconds = |call: &mut dyn FnMut() -> T| {
        let begun = Instant::now();
        black_box(call());
        begun.elapsed().as_secs_f64()
    };
    let mut ratios: Vec<f64> =
        (0..501).map(|_| seconds(&mut ours) / seconds(&mut theirs)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = overhead
}
criterion_main!(benches);
