//! Recording a bound plan allocates nothing beside what wgpu allocates for the same dispatches
//! recorded by hand. No GPU is needed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use wgpu_attention::{Attention, Buffers, Choice, Method, Operand, Problem, Shape, wgpu};
use wgpu_attention_support::by_hand::ByHand;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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

/// One test, so that no other counts with it.
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
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            encode(&mut pass);
            ALLOCATIONS.load(Ordering::Relaxed) - before
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
