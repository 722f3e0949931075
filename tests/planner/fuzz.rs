//! Problems made of random calls with wild numbers: every answer is a value, none a panic. Tests
//! check arithmetic for overflow, so a sum that wraps is a panic too.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use wgpu_attention::{
    Align, Band, BiasLayout, Choice, Element, Error, Group, Layout, LoopLimit, Method, MultiHead,
    Operand, Problem, Shape, Tile,
};

use crate::device::Pretend;

const PROBLEMS: u64 = 6_000;
const WILD: [u32; 16] = [
    0,
    1,
    2,
    3,
    31,
    32,
    33,
    1_000,
    65_535,
    1 << 16,
    (1 << 30) - 1,
    1 << 30,
    (1 << 30) + 1,
    1 << 31,
    u32::MAX - 1,
    u32::MAX,
];
/// Few, since every head_dim and value_dim compiles kernels of its own.
const DIMS: [u32; 4] = [1, 4, 6, 64];
const TABLES: [Operand; 6] = [
    Operand::QLens,
    Operand::KvLens,
    Operand::CuSeqlensQ,
    Operand::CuSeqlensKv,
    Operand::Slopes,
    Operand::Sinks,
];

/// Numbers of one problem: all small, or wild ones among them.
struct Draw {
    rng: StdRng,
    wildness: f64,
}

impl Draw {
    fn new(seed: u64) -> Draw {
        let mut rng = StdRng::seed_from_u64(seed);
        let wildness = *[0.0, 0.05, 0.4].choose(&mut rng).expect("some");
        Draw { rng, wildness }
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        *all.choose(&mut self.rng).expect("some")
    }

    /// A wild number now and then, else one of these.
    fn size(&mut self, usual: &[u32]) -> u32 {
        match self.rng.random_bool(self.wildness) {
            true if self.rng.random() => self.rng.random(),
            true => self.of(&WILD),
            false => self.of(usual),
        }
    }

    fn float(&mut self) -> f32 {
        match self.rng.random_bool(self.wildness) {
            true => f32::from_bits(self.rng.random()),
            false => self.of(&[0.0, 0.125, 1.0, -2.0]),
        }
    }

    fn shape(&mut self) -> Shape {
        let kv_heads = self.size(&[1, 2]);
        Shape {
            batch: self.size(&[1, 1, 1, 3]),
            q_heads: self.size(&[1, 2, 4]).saturating_mul(kv_heads),
            kv_heads,
            q_len: self.size(&[0, 1, 40, 40, 100]),
            kv_len: self.size(&[0, 1, 40, 40, 100]),
            head_dim: self.size(&DIMS),
            value_dim: self.size(&DIMS),
        }
    }

    fn layout(&mut self, shape: Shape) -> Layout {
        let Shape { q_heads, q_len, head_dim, .. } = shape;
        match self.of(&[0, 1, 2]) {
            0 => Layout::head_major(q_heads, q_len, head_dim).at(self.size(&[0, 4, 5])),
            1 => Layout::token_major(q_heads, q_len, head_dim).at(self.size(&[0, 64])),
            _ => Layout {
                offset: self.size(&[0, 1, 32]),
                batch: self.size(&[0, 100_000]),
                head: self.size(&[0, 64, 10_000]),
                token: self.size(&[0, 64, 65, 1000]),
            },
        }
    }

    /// Words of a mask begin at multiples of 32; others are drawn as well.
    fn strides(&mut self) -> BiasLayout {
        BiasLayout {
            offset: self.size(&[0, 32, 5]),
            batch: self.size(&[0, 32_000]),
            head: self.size(&[0, 6_400]),
            query: self.size(&[0, 128, 7]),
            key: self.size(&[0, 1, 1, 1]),
        }
    }

    fn broadcast(&mut self, shape: Shape) -> Vec<u32> {
        let full = [shape.batch, shape.q_heads, shape.q_len, shape.kv_len];
        let axes = self.of(&[0, 1, 2, 3, 4, 4]);
        let mut shape: Vec<u32> = full[4 - axes..].iter().map(|&n| self.of(&[1, n, n])).collect();
        if self.rng.random_bool(self.wildness) {
            shape.push(self.size(&[1]));
        }
        shape
    }

    fn change(&mut self, problem: Problem) -> Problem {
        let shape = problem.shape();
        match self.rng.random_range(0..18) {
            0 => problem.causal(),
            1 => {
                let bound = |draw: &mut Draw| draw.rng.random::<bool>().then(|| draw.size(&[0, 9]));
                let (left, right) = (bound(self), bound(self));
                problem.band(Band { left, right })
            }
            2 | 3 => {
                let shift = Align::Shift(self.size(&[0, 3, -3i32 as u32]) as i32);
                problem.align(self.of(&[Align::TopLeft, Align::BottomRight, shift]))
            }
            4 => problem.scale(self.float()),
            5 => problem.softcap(self.float()),
            6 => {
                let element = self.of(&[Element::F32, Element::F16, Element::Bf16]);
                problem.element(self.of(&[Group::Queries, Group::Keys]), element)
            }
            7 => {
                let operand = match self.rng.random_bool(self.wildness) {
                    true => self.of(Operand::ALL),
                    false => self.of(&[Operand::Q, Operand::K, Operand::V, Operand::O]),
                };
                let layout = self.layout(shape);
                problem.layout(operand, layout)
            }
            8 => problem.bias(self.strides()),
            9 => problem.bias_shape(&self.broadcast(shape)),
            10 => problem.mask(self.strides()),
            11 => problem.mask_shape(&self.broadcast(shape)),
            12 => problem.q_lens(),
            13 => problem.kv_lens(),
            14 => problem.alibi().align(Align::BottomRight),
            15 => problem.sinks().lse(),
            16 => problem.packed(self.size(&[0, 1, 5])),
            _ => match self.of(&[0, 1, 2, 3]) {
                0 => problem.scores(),
                1 => problem.weights(),
                2 => in_row(problem.arena()),
                _ => problem.arena(),
            },
        }
    }

    fn problem(&mut self) -> Problem {
        let first = Problem::new(self.shape());
        (0..self.rng.random_range(0..10)).fold(first, |problem, _| self.change(problem))
    }

    fn choice(&mut self) -> Choice {
        let tile = Tile { queries: self.size(&[4, 32]), keys: self.size(&[32, 64]) };
        let staged = Choice::method(Method::Staged);
        self.of(&[Choice::default(), staged, staged, Choice::tile(tile)])
    }
}

/// Q, K, V and O one after the other, far enough apart for small shapes.
fn in_row(problem: Problem) -> Problem {
    let Shape { q_heads, kv_heads, q_len, kv_len, head_dim, value_dim, .. } = problem.shape();
    problem
        .layout(Operand::Q, Layout::head_major(q_heads, q_len, head_dim).at(1 << 20))
        .layout(Operand::K, Layout::head_major(kv_heads, kv_len, head_dim).at(2 << 20))
        .layout(Operand::V, Layout::head_major(kv_heads, kv_len, value_dim).at(3 << 20))
        .layout(Operand::O, Layout::head_major(q_heads, q_len, value_dim).at(4 << 20))
}

/// What the problem says of its own sizes agrees with itself.
fn sizes(problem: &Problem) {
    for &operand in Operand::ALL {
        let (elements, bytes) = (problem.elements(operand), problem.bytes(operand));
        assert!(bytes >= elements, "{operand}: {elements} elements in {bytes} bytes");
        assert!(bytes % 4 == 0 || bytes == u64::MAX, "{operand}");
    }
    let mut end = 0;
    for range in TABLES.into_iter().filter_map(|operand| problem.table(operand)) {
        assert_eq!(range.start, end, "tables lie one after another");
        end = range.end;
    }
    assert_eq!(end, problem.elements(Operand::Tables));
}

/// Everything that is asked of a problem without data: 0 if it is wrong, 1 if only this device
/// refuses it, 2 if there is a plan.
fn ask(pretend: &Pretend, problem: &Problem, choice: Choice, d_model: u32) -> usize {
    sizes(problem);
    let plan = pretend.attention.plan_with(problem, choice);
    let layer = MultiHead::new(d_model, problem.clone());
    let context = layer.clone().context(d_model).biases().residual();
    for layer in [layer, context] {
        Operand::ALL.iter().for_each(|&operand| assert!(layer.elements(operand) < u64::MAX));
        let _ = layer.validate();
        if let Ok(plan) = pretend.attention.plan_multi_head(&layer) {
            assert!(layer.validate().is_ok() && plan.scratch_bytes() < 1 << 40);
        }
    }
    match (problem.validate(), plan) {
        (Err(wrong), Err(refused)) => {
            // By text: NaN in it does not matter.
            assert_eq!(format!("{wrong:?}"), format!("{refused:?}"));
            assert!(!matches!(wrong, Error::Limit { .. } | Error::Device(_)), "{wrong}");
            0
        }
        (Err(wrong), Ok(_)) => panic!("planned: {wrong}"),
        (Ok(()), Err(refused)) => {
            assert!(!matches!(refused, Error::Device(_)), "{refused}");
            1
        }
        (Ok(()), Ok(plan)) => {
            let description = plan.describe();
            let has_work = problem.elements(Operand::O) > 0;
            assert_eq!(description.dispatches.is_empty(), !has_work);
            2
        }
    }
}

#[test]
fn random_problems_are_answered() {
    let pretended = [LoopLimit::Unlimited, LoopLimit::Iterations(65_535)]
        .map(|loop_limit| Pretend::new(&wgpu::Limits::default(), loop_limit));
    let mut counts = [0u32; 3];
    let mut panicked = Vec::new();
    for seed in 0..PROBLEMS {
        let mut draw = Draw::new(seed);
        let (problem, choice) = (draw.problem(), draw.choice());
        let d_model = draw.size(&DIMS);
        let pretend = &pretended[seed as usize % 2];
        match catch_unwind(AssertUnwindSafe(|| ask(pretend, &problem, choice, d_model))) {
            Ok(answer) => counts[answer] += 1,
            Err(_) => panicked.push(format!("seed {seed}: {choice:?} {problem:?}")),
        }
    }
    let [wrong, refused, planned] = counts;
    println!("{wrong} wrong, {refused} refused, {planned} planned");
    assert!(panicked.is_empty(), "{} panics:\n{}", panicked.len(), panicked.join("\n"));
    assert!(wrong > 1000 && refused > 100 && planned > 500);
}
