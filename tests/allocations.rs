//! Recording a bound plan allocates nothing beside what wgpu allocates for the same dispatches
//! recorded by hand; a call that is refused, nothing of the size of what it asked for. No GPU is needed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use wgpu_attention::{
    Attention, Buffers, Choice, Error, Gpu, Inputs, LayerInputs, Method, MultiHead, Operand,
    Problem, Shape, wgpu,
};
use wgpu_attention_support::by_hand::ByHand;

struct Counting;

thread_local! {
    /// Of this thread, so that no other test counts with it.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get() + layout.size() as u64);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn recording_allocates_nothing() {
    let (device, _queue) = wgpu::Device::noop(&Default::default());
    let attention = Attention::new(&device);
    let problem = Problem::new(Shape::self_attention(1, 2, 5, 4)).lse();
    let storage = |bytes: u64| {
        let usage = wgpu::BufferUsages::STORAGE;
        let (label, size, mapped_at_creation) = (None, bytes, false);
        device.create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation })
    };
    let row = || storage(problem.bytes(Operand::Q));
    let (q, k, v, o, lse) = (row(), row(), row(), row(), storage(problem.bytes(Operand::Lse)));
    for method in [Method::Flash, Method::Staged] {
        let plan = attention.plan_with(&problem, Choice::method(method)).expect("a plan");
        let scratch = storage(plan.scratch_bytes());
        let buffers = Buffers::new(&q, &k, &v, &o).with(Operand::Lse, &lse);
        let bound = plan.bind(buffers.with(Operand::Scratch, &scratch)).expect("bound");
        let by_hand = ByHand::new(&device, &plan);
        let count = |encode: &dyn Fn(&mut wgpu::ComputePass<'_>)| {
            let mut encoder = device.create_command_encoder(&Default::default());
            let mut pass = encoder.begin_compute_pass(&Default::default());
            let before = ALLOCATIONS.get();
            encode(&mut pass);
            ALLOCATIONS.get() - before
        };
        let ours = || count(&|pass| bound.encode(pass));
        let theirs = || count(&|pass| by_hand.encode(pass));
        // The first ones may grow what wgpu keeps.
        let warm = (ours(), theirs());
        let (ours, theirs) = (ours(), theirs());
        println!("{method:?}: {ours} allocations, {theirs} by hand; at first {warm:?}");
        assert_eq!(ours, theirs, "{method:?}");
    }
}

/// Weights of 65,000 tokens would be 17 GB, and Q, K, V and O 1 MB each: refused before any is made.
#[test]
fn refused_calls_allocate_little() {
    let (device, queue) = wgpu::Device::noop(&Default::default());
    let gpu = Gpu::from_device(device, queue);
    let tokens = 65_000u32;
    let problem = Problem::new(Shape::self_attention(1, 1, tokens, 4)).weights();
    let x = vec![0.5f32; 4 * tokens as usize];
    let w = [0.5f32; 16];
    let layer = MultiHead::new(4, problem.clone());
    let before = BYTES.get();
    let errors = [
        gpu.attention(&problem, Inputs::new(&x, &x, &x)).expect_err("17 GB"),
        gpu.multi_head(&layer, LayerInputs::new(&x, [&w; 4])).expect_err("17 GB"),
    ];
    let bytes = BYTES.get() - before;
    let need = 4 * u64::from(tokens) * u64::from(tokens);
    for error in errors {
        assert_eq!(error, Error::Limit { what: "weights", need, got: 128 << 20 });
    }
    println!("{bytes} bytes for two refusals");
    assert!(bytes < 1 << 20, "{bytes} bytes");
}
