//! Every kernel there is, and the walk over them that all tests share of what must hold for each.

use wgpu_attention::{
    Choice, Element, Error, Gpu, Group, Inputs, Method, Output, Plan, Problem, Shape, Tile, cpu,
};
use wgpu_attention_support::answers::{Checked, EVERYTHING, FLASH, LSE, STAGED, TILE, Wants};
use wgpu_attention_support::cases::Case;
use wgpu_attention_support::data::Data;

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
    Kernel { name, device, choice, wants: LSE, split: false }
}

pub static KERNELS: [Kernel; 7] = [
    fused("flash", || FLASH),
    fused("decode", || DECODE),
    fused("broadcast", || broadcast(1, 8)),
    Kernel { wants: EVERYTHING, ..fused("staged", || STAGED) },
    Kernel { device: split, split: true, ..fused("flash, split", || Choice::tile(TILE)) },
    Kernel { device: split, split: true, wants: EVERYTHING, ..fused("staged, split", || STAGED) },
    Kernel { device: matrix::gpu, ..fused("matrix", || MATRIX) },
];

fn split() -> Option<&'static Gpu> {
    Some(split_gpu())
}

/// What else the kernels' sizes make of a call: rows in a lane, and splits that few calls have.
pub static MORE: [Kernel; 3] = [
    fused("broadcast, 2 rows", || broadcast(2, 8).with_keys_in_texture(true)),
    fused("broadcast, 4 rows", || broadcast(4, 8)),
    Kernel { device: split, split: true, ..fused("broadcast, split", || broadcast(1, 8)) },
];

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

    fn is_there(&self) -> bool {
        self.plan(&Problem::new(Shape::self_attention(1, 1, 1, 8))).is_some()
    }

    /// Whether it takes f16 operands in rows of so many, in one sweep or split.
    pub fn takes_f16(&self, dim: u32) -> bool {
        let problem = Problem::new(Shape::self_attention(1, 2, 300, dim));
        let problem = problem.element(Group::Queries, Element::F16);
        self.plan(&problem.element(Group::Keys, Element::F16)).is_some()
    }

    /// The host call, with all outputs.
    pub fn run(&self, problem: &Problem, inputs: Inputs<'_>) -> Output {
        let wanted = (self.wants)(problem.clone());
        let output = self.gpu().attention_with(&wanted, inputs, self.choice());
        output.unwrap_or_else(|error| panic!("{}: {error}: {problem:?}", self.name))
    }
}

/// Rows so long that software drivers take 3 to 36 s to compile a kernel whose lanes hold whole ones: those
/// are for the exhaustive tests.
pub fn long_rows(choice: Choice, problem: &Problem) -> bool {
    let shape = problem.shape();
    let dim = shape.head_dim.max(shape.value_dim);
    match choice.method {
        Some(Method::Decode) => dim > 40 && shape.q_len > 1,
        Some(Method::Broadcast) => dim > 128,
        _ => false,
    }
}

/// Who computes a case.
#[derive(Clone, Copy)]
pub enum Who {
    /// Half of the kernels, the other half for the next number.
    Half(usize),
    All,
    /// All, and what they are in other sizes.
    Sizes,
}

/// Hands O and LSE to `check` once for each: the definition and its twin on the CPU, and the kernels that
/// take the case. Operands are stored as the case says.
pub fn every(case: Case, data: Data, who: Who, mut check: impl FnMut(&str, &Output)) {
    let problem = LSE(case.problem.clone());
    let reference = cpu::attention(&problem, data.inputs()).expect(&case.name);
    check("cpu", &reference);
    for split in [None, Some(32)] {
        let twin = cpu::flash(&problem, data.inputs(), TILE, split).expect(&case.name);
        check("cpu, twin", &twin);
    }
    let checked = Checked { case, data, reference, tolerance: [0.0; 4] };
    // Several rows a lane take long to compile, and differ in nothing that types would tell.
    let short = problem.shape().head_dim <= 16 && checked.case.types == [Element::F32; 2];
    let more = MORE.iter().filter(|_| matches!(who, Who::Sizes) && short);
    let (turn, turns) = if let Who::Half(number) = who { (number % 2, 2) } else { (0, 1) };
    let kernels = KERNELS.iter().skip(turn).step_by(turns).chain(more);
    let mut ran = 0;
    for kernel in kernels.filter(|kernel| (kernel.device)().is_some()) {
        let gpu = kernel.gpu();
        if kernel.split && problem.shape().kv_len <= 64 {
            continue;
        }
        match pollster::block_on(checked.run(gpu, &problem, kernel.choice())) {
            Ok(output) => {
                ran += 1;
                check(kernel.name, &output);
            }
            // Odd rows in 16 bits cannot be written by themselves.
            Err(Error::Stride { .. }) => {}
            Err(Error::Limit { what, .. }) => println!("{}: lacks {what}", kernel.name),
            Err(error) => panic!("{}, {}: {error}", checked.case.name, kernel.name),
        }
    }
    println!("{}: {ran} kernels", checked.case.name);
    assert!(ran >= if turns == 1 { 3 } else { 1 }, "{}: {ran} kernels", checked.case.name);
}

/// Who took part in a test: counted, printed at its end, and asserted then.
pub struct Walk {
    test: &'static str,
    /// How often each ran, and how often it could not, or was left to the exhaustive tests.
    counts: [[usize; 2]; KERNELS.len()],
    /// Long rows too.
    whole: bool,
    /// Each kernel takes one in so many of the problems.
    turns: usize,
    turn: usize,
    last: Option<Problem>,
}

impl Walk {
    pub fn new(test: &'static str) -> Walk {
        Walk { test, counts: Default::default(), whole: false, turns: 1, turn: 0, last: None }
    }

    /// A third of the kernels for each problem, another for the next: where problems are many, and each is
    /// kernels of its own to compile.
    pub fn in_turn(test: &'static str) -> Walk {
        let mut walk = Walk::new(test);
        walk.turns = 3;
        walk
    }

    /// For the exhaustive tests: skips nothing that a kernel takes.
    pub fn whole(test: &'static str) -> Walk {
        let mut walk = Walk::new(test);
        walk.whole = true;
        walk
    }

    /// Hands over each kernel that takes the problem.
    pub fn each(&mut self, problem: &Problem, mut run: impl FnMut(&'static Kernel)) {
        if self.last.as_ref() != Some(problem) {
            self.last = Some(problem.clone());
            self.turn += 1;
        }
        for (at, (kernel, [ran, skipped])) in KERNELS.iter().zip(&mut self.counts).enumerate() {
            let left = !(at + self.turn).is_multiple_of(self.turns)
                || !self.whole && long_rows(kernel.choice(), problem);
            let plan = if left { None } else { kernel.plan(problem) };
            match plan {
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
    /// Every kernel that the device has for plain f32 ran, whatever the problems were.
    fn drop(&mut self) {
        let counts = KERNELS.iter().zip(&self.counts);
        let words = counts.clone().map(|(kernel, [ran, skipped])| match skipped {
            0 => format!("{} {ran}", kernel.name),
            _ => format!("{} {ran} ({skipped} skipped)", kernel.name),
        });
        println!("{}: {}", self.test, words.collect::<Vec<_>>().join(", "));
        if !std::thread::panicking() {
            for (kernel, [ran, _]) in
                counts.filter(|(kernel, _)| !kernel.split && kernel.is_there())
            {
                assert!(*ran > 0, "{}: {} never ran", self.test, kernel.name);
            }
        }
    }
}
