//! What the adapter does of multiply-adds in registers: other benches give their rates as a share of it.

mod multiply_adds;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use multiply_adds::{Ceiling, OPERATIONS};
use wgpu_attention::Gpu;

fn ceiling(criterion: &mut Criterion) {
    let gpu = Gpu::new().unwrap_or_else(|error| panic!("{error}"));
    let ceiling = Ceiling::new(&gpu);
    println!("{}: {:.1} GFLOP/s", gpu.device().adapter_info().name, ceiling.rate());
    let mut group = criterion.benchmark_group("ceiling");
    group.throughput(Throughput::Elements(OPERATIONS as u64)).sample_size(10);
    group.bench_function("multiply-adds", |bencher| bencher.iter(|| ceiling.run()));
    group.finish();
}

criterion_group!(benches, ceiling);
criterion_main!(benches);
