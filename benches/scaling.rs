//! How time grows with the number of tokens: the CPU reference, staged, fused; all keys, causal, or
//! the last 256; heads of 64 and 128; f32 and f16. Each checks its answer before it is timed.
//!
//! The rate is in multiply-adds counted as two operations, 4 heads head_dim a call and score that is
//! not hidden. A line before each measurement gives the rate of the best of five calls as a share of
//! the adapter's own ceiling for multiply-adds, and how long the first call took: planning, compiling
//! (or finding in the driver's cache) and running. On the GPU a call is recording, submitting and
//! waiting, with the operands already there.

#[path = "ceiling/multiply_adds.rs"]
mod multiply_adds;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use multiply_adds::Ceiling;
use wgpu_attention::{
    Align, Band, Choice, Element, Gpu, Group, Method, Operand, Problem, Shape, cpu,
};
use wgpu_attention_support::resident::{Operands, Resident};

const HEADS: u32 = 8;
const TOKENS: [u32; 6] = [128, 256, 512, 1024, 2048, 4096];
/// Keys that a query sees in a sliding window.
const WINDOW: u32 = 256;
/// The slow ones, which grow alike, stop here.
const MOST_TOKENS_CPU: u32 = 256;
const MOST_TOKENS_STAGED: u32 = 512;

fn scaling(criterion: &mut Criterion) {
    let gpu = Gpu::new().unwrap_or_else(|error| panic!("{error}"));
    let ceiling = Ceiling::new(&gpu).rate();
    println!("ceiling: {ceiling:.1} GFLOP/s");
    for (dim, element) in [(64, Element::F32), (128, Element::F32), (64, Element::F16)] {
        for (kind, band) in kinds() {
            let name = format!("scaling/{HEADS} x {dim} {element:?}{kind}");
            let mut group = criterion.benchmark_group(&name);
            group.sampling_mode(SamplingMode::Flat);
            for tokens in TOKENS {
                let problem = problem(tokens, dim, element, band);
                let mut operands = Operands::normal(&problem);
                if element == Element::F16 {
                    operands.round();
                }
                let flops = 4 * u64::from(HEADS * dim) * scores(tokens, band);
                group.throughput(Throughput::Elements(flops));

                if tokens <= MOST_TOKENS_CPU && element == Element::F32 {
                    let reference =
                        || cpu::attention(&problem, operands.inputs()).expect("an output").o;
                    group.bench_function(BenchmarkId::new("cpu", tokens), |bencher| {
                        check("cpu", &problem, &operands, &reference());
                        bencher.iter(|| black_box(reference()));
                    });
                }
                let staged = ("staged", Choice::method(Method::Staged), MOST_TOKENS_STAGED);
                for (name, choice, most) in [staged, ("fused", Choice::default(), u32::MAX)] {
                    if tokens > most {
                        continue;
                    }
                    // Made when the first measurement asks for it: a filter may leave this one out.
                    let mut made = None;
                    group.bench_function(BenchmarkId::new(name, tokens), |bencher| {
                        let resident = made.get_or_insert_with(|| {
                            let begun = Instant::now();
                            let plan = gpu.planner().plan_with(&problem, choice);
                            let plan = plan.unwrap_or_else(|error| panic!("{tokens}: {error}"));
                            let resident = Resident::new(&gpu, &plan, operands.inputs());
                            let resident = resident.expect("buffers");
                            resident.run().expect("a run");
                            let first = begun.elapsed();
                            let o = resident.read().expect("an output");
                            check(name, &problem, &operands, &o);
                            let best = (0..5).map(|_| seconds(&resident)).fold(f64::MAX, f64::min);
                            let rate = flops as f64 / best / 1e9;
                            let share = 100.0 * rate / ceiling;
                            let tile = plan.describe().tile;
                            print!("{:?} {} x {}: ", plan.method(), tile.queries, tile.keys);
                            println!("{rate:.1} GFLOP/s, {share:.0} %, first call {first:.0?}");
                            resident
                        });
                        bencher.iter(|| resident.run().expect("a run"));
                    });
                }
            }
            group.finish();
        }
    }
}

/// All keys; causal; the last ones of them.
fn kinds() -> [(&'static str, Band); 3] {
    let window = Band { left: Some(WINDOW - 1), right: Some(0) };
    [("", Band::default()), (", causal", Band::CAUSAL), (", window", window)]
}

/// Scores of a head that are not hidden.
fn scores(tokens: u32, band: Band) -> u64 {
    let of = |i: u32| {
        let begin = band.left.map_or(0, |left| i.saturating_sub(left));
        u64::from(band.right.map_or(tokens, |right| tokens.min(i + right + 1)) - begin)
    };
    (0..tokens).map(of).sum()
}

fn problem(tokens: u32, dim: u32, element: Element, band: Band) -> Problem {
    let problem = Problem::new(Shape::self_attention(1, HEADS, tokens, dim));
    let problem = problem.element(Group::Queries, element).element(Group::Keys, element);
    problem.band(band).align(Align::TopLeft)
}

fn seconds(resident: &Resident<'_>) -> f64 {
    let begun = Instant::now();
    resident.run().expect("a run");
    begun.elapsed().as_secs_f64()
}

/// Rows spread over all heads, the first and the last among them, against f64.
fn check(name: &str, problem: &Problem, operands: &Operands, o: &[f32]) {
    let (tokens, width) = (problem.shape().q_len, problem.shape().value_dim as usize);
    let rows = (HEADS * tokens) as usize;
    assert_eq!(o.len(), rows * width, "{name} {tokens}");
    // f16: outputs up to 4 are rounded to 11 bits.
    let halves = problem.bytes(Operand::O) < 4 * problem.elements(Operand::O);
    let tolerance = if halves { 2e-3 } else { 1e-5 };
    for at in (0..rows).step_by(61).chain([rows - 1]) {
        let place = [0, at as u32 / tokens, at as u32 % tokens];
        let row = cpu::row(problem, operands.inputs(), place).expect("a row");
        for (got, want) in o[at * width..][..width].iter().zip(&row.o) {
            let error = (f64::from(*got) - want).abs();
            assert!(error <= tolerance, "{name} {tokens}, row {place:?}: {got} for {want}");
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
