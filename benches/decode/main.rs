//! A few query rows against a cache, as its keys grow: storage types, groups of heads, pages. Each
//! checks its answer before it is timed.
//!
//! A call is recording, submitting and waiting, with all operands already there. The rate is in
//! bytes of the cache's rows that a call reads.

mod cached;

use std::time::Duration;

use cached::Cached;
use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use wgpu_attention::{CacheShape, Element, Gpu};

const KV_HEADS: u32 = 8;
const DIM: u32 = 64;
const PAGE: u32 = 16;

fn decode(criterion: &mut Criterion) {
    let gpu = Gpu::new().unwrap_or_else(|error| panic!("{error}"));
    for keys in [1024, 4096, 16_384] {
        let mut group = criterion.benchmark_group(format!("decode/{keys} keys"));
        group.sampling_mode(SamplingMode::Flat);
        for element in [Element::F32, Element::F16, Element::Int8] {
            let plain = CacheShape::new(1, KV_HEADS, keys, DIM).element(element);
            for shape in [plain, plain.paged(PAGE, keys.div_ceil(PAGE))] {
                let cached = Cached::new(&gpu, shape);
                for (rows, share) in [(1, 1), (4, 1), (16, 1), (1, 4), (4, 4)] {
                    let call = cached.call(rows, KV_HEADS * share);
                    let pages = if shape.paging.is_some() { ", paged" } else { "" };
                    let name = format!("{element:?}{pages}, groups of {share}");
                    group.throughput(Throughput::Bytes(shape.bytes()));
                    group.bench_function(BenchmarkId::new(name, rows), |bencher| {
                        call.check();
                        bencher.iter(|| call.run());
                    });
                }
            }
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = decode
}
criterion_main!(benches);
