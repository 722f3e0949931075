//! Random changes to right files: the reader refuses them or computes, and does not panic, or take work
//! or memory that the file does not account for.

#[path = "../../examples/attend/attend.rs"]
mod attend;
#[path = "../../examples/six_tokens/backend.rs"]
mod backend;
#[path = "../../examples/attend/case.rs"]
mod case;
#[path = "changes.rs"]
mod changes;
#[path = "../../examples/attend/check.rs"]
mod check;
#[path = "../../examples/attend/file.rs"]
mod file;
#[path = "../../examples/attend/json.rs"]
mod json;
#[path = "../../examples/attend/params.rs"]
mod params;
#[path = "../../examples/attend/tensor.rs"]
mod tensor;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use attend::Part;
use backend::{Backend, Choice};
use case::{Case, Order};
use check::Check;
use file::File;
use params::Flags;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use safetensors::Dtype;

use super::made::{Made, Tensor};
use super::tool::Folder;

/// The largest piece of memory that was ever asked for.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// All that this thread ever asked for: what reading and checking costs, without a clock.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

struct Watched;

// SAFETY: the system's allocator, with a look at sizes.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        ASKED.set(ASKED.get() + layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static WATCHED: Watched = Watched;

/// How far a file got.
#[derive(Debug, Default)]
struct Reached {
    read: usize,
    cases: usize,
    computed: usize,
    checked: usize,
}

const PARAMS: &str = r#"{"scale": 0.5, "softcap": 2.5, "causal": "bottom_right", "shift": 1,
    "window_left": 3, "window_right": -1, "alibi": true}"#;

/// Small files that use all there is.
fn seeds() -> Vec<Made> {
    let random = Tensor::random;
    let counts = |numbers: &[i32]| Tensor::new(Dtype::I32, &[numbers.len()], numbers);
    let base = |types: [Dtype; 2], batch: usize| {
        Made::new()
            .with("q", random(types[0], &[batch, 2, 3, 4], 1))
            .with("k", random(types[1], &[batch, 1, 5, 4], 2))
            .with("v", random(types[1], &[batch, 1, 5, 3], 3))
            .with("alibi_slopes", random(Dtype::F32, &[2], 4))
            .with("sinks", random(Dtype::F32, &[2], 5))
            .with("out", random(Dtype::F64, &[batch, 2, 3, 3], 6))
            .with("lse", random(Dtype::F32, &[batch, 2, 3], 7))
            .meta("suggested_atol", r#"{"out": 1e-5, "lse": 1e-5}"#)
            .params(PARAMS)
    };
    let mask = Tensor::new(Dtype::BOOL, &[3, 5], &[1u8, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0, 1]);
    vec![
        base([Dtype::F32; 2], 2).with("kv_lens", counts(&[5, 2])).with("mask", mask),
        base([Dtype::F16, Dtype::BF16], 1)
            .with("cu_seqlens_q", counts(&[0, 1, 3]))
            .with("cu_seqlens_kv", counts(&[0, 4, 5]))
            .with("mask", random(Dtype::F32, &[1, 5], 8)),
        Made::usual().with("weights", random(Dtype::F32, &[2, 4, 9, 13], 9)),
    ]
}

/// As the tool does with a file, except where that would be much work.
fn attempt(
    file: Result<File, String>,
    order: Order,
    backend: &Backend,
    reached: &mut Reached,
) -> Result<(), String> {
    let file = file?;
    reached.read += 1;
    let case = Case::new(&file, order, Flags::default())?;
    reached.cases += 1;
    let size = |part| case.shape(part).iter().map(|&n| n as f64 + 1.0).product::<f64>();
    if size(Part::Out) > 1e5 || size(Part::Weights) > 1e5 {
        return Ok(());
    }
    let check = Check::new(&file, &case, None, backend.0.is_some())?;
    let is_expected = |&part: &Part| check.parts().any(|expected| expected == part);
    let parts: Vec<Part> = Part::ALL.into_iter().filter(is_expected).collect();
    let made = case.attend(backend, &parts)?;
    reached.computed += 1;
    for made in &made {
        let finding = check.finding(made, &case)?;
        let told = finding.is_some_and(|found| found.is_good() || !found.place.is_empty());
        reached.checked += usize::from(told);
    }
    Ok(())
}

fn read(bytes: &[u8]) -> Result<File, String> {
    File::read(bytes, bytes.len() as u64)
}

#[test]
fn changed_files_are_refused_or_computed() {
    let cpu = Backend::open(Some(Choice::Cpu)).expect("the CPU");
    let seeds = seeds();
    let mut reached = Reached::default();
    let folder = Folder::new("fuzz");
    for seed in &seeds {
        let file = File::open(&folder.write("seed.safetensors", &seed.bytes()));
        attempt(file, Order::Bhnd, &cpu, &mut reached).expect("a right file");
    }
    assert_eq!((reached.computed, reached.checked), (3, 5));
    let mut random = StdRng::seed_from_u64(20_260_101);
    let (mut refused, mut most) = (0, (0, 0));
    for round in 0..8000 {
        let mut made = seeds[round % seeds.len()].clone();
        let bytes = match round % 4 {
            0 => {
                changes::of_tensors(&mut made, &mut random);
                made.bytes()
            }
            1 => made.params(&changes::of_params(PARAMS, &mut random)).bytes(),
            _ => {
                let mut bytes = made.bytes();
                changes::of_bytes(&mut bytes, &mut random);
                bytes
            }
        };
        let asked = ASKED.get();
        let order = if random.random_range(0..8) > 0 { Order::Bhnd } else { Order::Bnhd };
        refused += usize::from(attempt(read(&bytes), order, &cpu, &mut reached).is_err());
        most = most.max((ASKED.get() - asked, round));
    }
    println!("{refused} refused, {reached:?}; {} bytes in round {} at most", most.0, most.1);
    assert!(most.0 < 1 << 20, "{} bytes in round {}", most.0, most.1);
    let Reached { read, cases, computed, checked } = reached;
    assert!(refused > 2000 && read > 2000 && cases > 1000 && computed > 500 && checked > 500);
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest < 64 << 20, "{largest} bytes at once");
}

/// Only the data changes: lengths, bounds, masks, numbers of every kind.
#[test]
fn changed_data_does_not_trouble_the_gpu() {
    let gpu = Backend::open(Some(Choice::Gpu)).expect("an adapter");
    let seeds: Vec<_> = seeds().iter().map(Made::bytes).collect();
    let mut random = StdRng::seed_from_u64(7);
    let mut reached = Reached::default();
    for round in 0..300 {
        let mut bytes = seeds[round % seeds.len()].clone();
        let header = changes::header_end(&bytes);
        for _ in 0..random.random_range(1..20) {
            let at = random.random_range(header..bytes.len());
            bytes[at] = *[0, 1, 2, 127, 128, 255].choose(&mut random).expect("a byte");
        }
        // Lengths out of range are refused.
        let _ = attempt(read(&bytes), Order::Bhnd, &gpu, &mut reached);
    }
    println!("{reached:?}");
    assert!(reached.computed > 100, "{reached:?}");
    let right = attempt(read(&seeds[0]), Order::Bhnd, &gpu, &mut reached);
    right.expect("the device, as well as ever");
}
