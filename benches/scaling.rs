//! How time grows with the number of tokens: the CPU reference, staged, fused. Each checks its
//! answer before it is timed.
//!
//! The rate is in multiply-adds counted as two operations, 4 heads tokens^2 head_dim a call. On
//! the GPU a call is recording, submitting and waiting, with the operands already there.

#[path = "../examples/compare/resident.rs"]
mod resident;

use std::hint::black_box;
use std::time::Duration;

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use resident::{Operands, Resident};
use wgpu_attention::{Choice, Gpu, Method, Problem, Shape, cpu};

const HEADS: u32 = 4;
const HEAD_DIM: u32 = 64;
const TOKENS: [u32; 5] = [128, 256, 512, 1024, 2048];

/// Largest absolute error against f64.
const TOLERANCE: f64 = 1e-5;

fn scaling(criterion: &mut Criterion) {
    let gpu = Gpu::new().unwrap_or_else(|error| panic!("{error}"));
    let mut group = criterion.benchmark_group(format!("scaling/{HEADS} heads x {HEAD_DIM}"));
    group.sampling_mode(SamplingMode::Flat);
    for tokens in TOKENS {
        let problem = Problem::new(Shape::self_attention(1, HEADS, tokens, HEAD_DIM));
        let operands = Operands::normal(&problem);
        let flops = 4 * u64::from(HEADS * HEAD_DIM) * u64::from(tokens) * u64::from(tokens);
        group.throughput(Throughput::Elements(flops));

        let reference = || cpu::attention(&problem, operands.inputs()).expect("an output").o;
        group.bench_function(BenchmarkId::new("cpu", tokens), |bencher| {
            check("cpu", &problem, &operands, &reference());
            bencher.iter(|| black_box(reference()));
        });
        for (name, method) in [("staged", Method::Staged), ("fused", Method::Flash)] {
            group.bench_function(BenchmarkId::new(name, tokens), |bencher| {
                let plan = gpu.planner().plan_with(&problem, Choice::method(method));
                let plan = plan.unwrap_or_else(|error| panic!("{name} {tokens}: {error}"));
                let resident = Resident::new(&gpu, &plan, operands.inputs()).expect("buffers");
                resident.run().expect("a run");
                check(name, &problem, &operands, &resident.read().expect("an output"));
                bencher.iter(|| resident.run().expect("a run"));
            });
        }
    }
    group.finish();
}

/// Rows spread over all heads, the first and the last among them, against f64.
fn check(name: &str, problem: &Problem, operands: &Operands, o: &[f32]) {
    let tokens = problem.shape().q_len;
    let width = HEAD_DIM as usize;
    let rows = (HEADS * tokens) as usize;
    assert_eq!(o.len(), rows * width, "{name} {tokens}");
    for at in (0..rows).step_by(61).chain([rows - 1]) {
        let place = [0, at as u32 / tokens, at as u32 % tokens];
        let row = cpu::row(problem, operands.inputs(), place).expect("a row");
        for (got, want) in o[at * width..][..width].iter().zip(&row.o) {
            let error = (f64::from(*got) - want).abs();
            assert!(error <= TOLERANCE, "{name} {tokens}, row {place:?}: {got} for {want}");
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = scaling
}
criterion_main!(benches);
