//! Every kernel there is, and the walk over them that all tests share of what must hold for each.

use wgpu_attention::{Choice, Error, Gpu, Inputs, Method, Output, Plan, Problem, Tile};
use wgpu_attention_support::answers::{EVERYTHING, FLASH, LSE, STAGED, TILE, Wants};

use crate::checks::split_gpu;
use crate::matrix;
use crate::support::gpu;

/// One way to compute attention on a device.
pub struct Kernel {
    pub name: &'static str,
    /// `None` where the adapter lacks what it needs.
    device: fn() -> Option<&'static Gpu>,
    choice: fn() -> Choice,
    /// All that it can give besides O.
    pub wants: Wants,
    /// Takes only what is planned with split keys.
    split: bool,
    /// Every device has it.
    everywhere: bool,
}

pub const DECODE: Choice = Choice::method(Method::Decode);
pub const MATRIX: Choice = Choice::method(Method::Matrix);

/// The kernel of subgroups, with so many rows a lane.
pub fn broadcast(rows: u32, keys: u32) -> Choice {
    let lanes = gpu().device().adapter_info().subgroup_max_size;
    Choice::method(Method::Broadcast).with_tile(Tile { queries: rows * lanes, keys })
}

const fn fused(name: &'static str, choice: fn() -> Choice) -> Kernel {
    let device = || Some(gpu());
    Kernel { name, device, choice, wants: LSE, split: false, everywhere: true }
}

pub static KERNELS: [Kernel; 7] = [
    fused("flash", || FLASH),
    fused("decode", || DECODE),
    Kernel { everywhere: false, ..fused("broadcast", || broadcast(1, 8)) },
    Kernel { wants: EVERYTHING, ..fused("staged", || STAGED) },
    Kernel { device: split, split: true, ..fused("flash, split", || Choice::tile(TILE)) },
    Kernel { device: split, split: true, wants: EVERYTHING, ..fused("staged, split", || STAGED) },
    Kernel { device: matrix::gpu, everywhere: false, ..fused("matrix", || MATRIX) },
];

fn split() -> Option<&'static Gpu> {
    Some(split_gpu())
}

impl Kernel {
    pub fn gpu(&self) -> &'static Gpu {
        (self.device)().expect("a kernel that takes part has a device")
    }

    pub fn choice(&self) -> Choice {
        (self.choice)()
    }

    /// A plan with all that the kernel can give; `None` where device or problem do not allow it.
    fn plan(&self, problem: &Problem) -> Option<Plan> {
        let gpu = (self.device)()?;
        match gpu.planner().plan_with(&(self.wants)(problem.clone()), self.choice()) {
            Ok(plan) => {
                Some(plan).filter(|plan| !self.split || plan.describe().split_keys.is_some())
            }
            Err(Error::Limit { .. }) => None,
            Err(error) => panic!("{}: {error}: {problem:?}", self.name),
        }
    }

    /// The host call, with all outputs.
    pub fn run(&self, problem: &Problem, inputs: Inputs<'_>) -> Output {
        let wanted = (self.wants)(problem.clone());
        let output = self.gpu().attention_with(&wanted, inputs, self.choice());
        output.unwrap_or_else(|error| panic!("{}: {error}: {problem:?}", self.name))
    }
}

/// Who took part in a test: counted, printed at its end, and asserted then.
pub struct Walk {
    test: &'static str,
    /// How often each ran, and how often it could not.
    counts: [[usize; 2]; KERNELS.len()],
}

impl Walk {
    pub fn new(test: &'static str) -> Walk {
        Walk { test, counts: Default::default() }
    }

    /// Hands over each kernel that takes the problem.
    pub fn each(&mut self, problem: &Problem, mut run: impl FnMut(&'static Kernel)) {
        for (kernel, [ran, skipped]) in KERNELS.iter().zip(&mut self.counts) {
            match kernel.plan(problem) {
                Some(_) => {
                    *ran += 1;
                    run(kernel);
                }
                None => *skipped += 1,
            }
        }
    }
}

impl Drop for Walk {
    /// Every kernel that all devices have ran, whatever the problems were.
    fn drop(&mut self) {
        let counts = KERNELS.iter().zip(&self.counts);
        let words = counts.clone().map(|(kernel, [ran, skipped])| match skipped {
            0 => format!("{} {ran}", kernel.name),
            _ => format!("{} {ran} ({skipped} skipped)", kernel.name),
        });
        println!("{}: {}", self.test, words.collect::<Vec<_>>().join(", "));
        if !std::thread::panicking() {
            for (kernel, [ran, _]) in
                counts.filter(|(kernel, _)| kernel.everywhere && !kernel.split)
            {
                assert!(*ran > 0, "{}: {} never ran", self.test, kernel.name);
            }
        }
    }
}
