//! Operands of several types anywhere in one buffer, a mask's bits and a bias among them, and small
//! operands in a buffer beside it. Around and between them lies a sentinel that nothing may change,
//! not even the half word beside a row of 16-bit output.

use wgpu_attention::half::{bf16, f16};
use wgpu_attention::{
    Align, Attention, BiasLayout, Buffers, Choice, Element, Extras, Group, Inputs, Layout, Method,
    Operand, Problem, Scalar, Shape, cpu,
};

use crate::program::{Program, USAGE};
use crate::support::normal;
use wgpu_attention_support::data::rounding;

const SENTINEL: u32 = 0x7fc5_a5a5;
const WORDS: usize = 16_384;
const SHAPE: Shape =
    Shape { q_len: 19, ..Shape::self_attention(2, 4, 75, 7) }.kv_heads(2).value_dim(5);

/// Where an operand lies, in elements of its own type, and its rows' length.
struct Home {
    operand: Operand,
    at: Layout,
    inner: u32,
}

fn home(operand: Operand, at: Layout, inner: u32) -> Home {
    Home { operand, at, inner }
}

/// Q and K per token, as one projection leaves them: [batch, token, 50 numbers].
fn per_token() -> Vec<Home> {
    let of = |first| Layout { offset: first, batch: 75 * 50, head: 7, token: 50 };
    let o = Layout { offset: 9300, batch: 500, head: 120, token: 6 };
    vec![
        home(Operand::Q, of(1), 7),
        home(Operand::K, of(29), 7),
        home(Operand::V, Layout::token_major(2, 75, 5).at(7601), 5),
        home(Operand::O, o, 5),
        home(Operand::Lse, Layout::head_major(4, 19, 1).at(5300), 1),
    ]
}

/// Far apart, the 16-bit ones that are only read at odd elements.
fn apart<T: Scalar, C: Scalar>() -> Vec<Home> {
    let q = |bytes: u32| bytes / T::ELEMENT.bytes();
    let k = |bytes: u32| bytes / C::ELEMENT.bytes();
    vec![
        home(Operand::Q, Layout::head_major(4, 19, 7).at(q(400) + 1), 7),
        home(Operand::O, Layout::head_major(4, 19, 6).at(q(6000)), 5),
        home(Operand::K, Layout::token_major(2, 75, 7).at(k(12_000) + 3), 7),
        home(Operand::V, Layout::head_major(2, 75, 5).at(k(24_000) + 1), 5),
        home(Operand::Lse, Layout::token_major(4, 19, 1).at(9000), 1),
    ]
}

/// In bits and in f32, past all the others.
const MASK: BiasLayout = BiasLayout { offset: 32 * 10_001, batch: 0, head: 0, query: 96, key: 1 };
const BIAS: BiasLayout = BiasLayout { offset: 11_003, batch: 0, head: 80, query: 0, key: 1 };

fn problem(homes: &[Home], types: [Element; 2]) -> Problem {
    let problem = Problem::new(SHAPE)
        .arena()
        .element(Group::Queries, types[0])
        .element(Group::Keys, types[1])
        .causal()
        .align(Align::BottomRight)
        .mask(MASK)
        .bias(BIAS)
        .kv_lens()
        .alibi()
        .sinks()
        .lse();
    homes.iter().fold(problem, |problem, home| problem.layout(home.operand, home.at))
}

/// The first element of every row.
fn rows(home: &Home) -> Vec<usize> {
    let (heads, tokens) = match home.operand {
        Operand::K | Operand::V => (SHAPE.kv_heads, SHAPE.kv_len),
        _ => (SHAPE.q_heads, SHAPE.q_len),
    };
    let at = home.at;
    let row = |b: u32, h: u32, t: u32| at.offset + b * at.batch + h * at.head + t * at.token;
    (0..SHAPE.batch)
        .flat_map(|b| (0..heads).flat_map(move |h| (0..tokens).map(move |t| (b, h, t))))
        .map(|(b, h, t)| row(b, h, t) as usize)
        .collect()
}

fn fill<T: Scalar>(image: &mut [u32], home: &Home) {
    let rows = rows(home);
    let x = normal(rows.len() * home.inner as usize, home.operand as u64);
    let image: &mut [T] = bytemuck::cast_slice_mut(image);
    for (first, x) in rows.into_iter().zip(x.chunks(home.inner as usize)) {
        image[first..].iter_mut().zip(x).for_each(|(to, x)| *to = T::from_f64((*x).into()));
    }
}

fn check<T: Scalar, C: Scalar>(name: &str, homes: &[Home], attention: &Attention, method: Method) {
    let program = Program::shared();
    let problem = problem(homes, [T::ELEMENT, C::ELEMENT]);
    let name = format!("{name}, {:?} and {:?}, {method:?}", T::ELEMENT, C::ELEMENT);
    let mut image = vec![SENTINEL; WORDS];
    for home in homes {
        match home.operand {
            Operand::Q => fill::<T>(&mut image, home),
            Operand::K | Operand::V => fill::<C>(&mut image, home),
            _ => {}
        }
    }
    for (at, word) in image[10_001..10_001 + 3 * 19].iter_mut().enumerate() {
        *word = 0x9e37_79b9u32.rotate_left(at as u32) | u32::from(at % 3 == 0);
    }
    let bias = normal(4 * 80, 77);
    image[11_003..11_003 + 320].copy_from_slice(bytemuck::cast_slice(&bias));
    let (kv_lens, slopes, sinks) = ([75, 40], [0.5, -0.1, 0.0, 0.2], [0.0, 1.0, -1.0, 3.0]);

    // The CPU takes the same memory as slices of every type; its mask is a bool a bit.
    let bools: Vec<bool> =
        (0..32 * WORDS).map(|bit| (image[bit / 32] >> (bit % 32)) & 1 == 1).collect();
    let keys: &[C] = bytemuck::cast_slice(&image);
    let mut inputs = Inputs::new(bytemuck::cast_slice::<u32, T>(&image), keys, keys);
    inputs.extras = Extras::NONE
        .bias(bytemuck::cast_slice(&image))
        .mask(&bools)
        .kv_lens(&kv_lens)
        .slopes(&slopes)
        .sinks(&sinks);
    let want = cpu::attention(&problem, inputs).unwrap_or_else(|e| panic!("{name}: {e}"));

    let mut tables = kv_lens.to_vec();
    tables.extend(slopes.iter().chain(&sinks).map(|x| x.to_bits()));
    assert_eq!(tables.len() as u64, problem.elements(Operand::Tables), "{name}");
    let [arena, tables] =
        [&image, &tables].map(|words| program.buffer(bytemuck::cast_slice(words)));
    let plan = attention.plan_with(&problem, Choice::method(method));
    let plan = plan.unwrap_or_else(|e| panic!("{name}: {e}"));
    let scratch = program.empty(plan.scratch_bytes(), USAGE);
    let given = Buffers::arena(&arena).with(Operand::Tables, &tables);
    let bound = plan.bind(given.with(Operand::Scratch, &scratch));
    let bound = bound.unwrap_or_else(|e| panic!("{name}: {e}"));
    program.submit(|encoder| bound.encode_in(encoder));
    let mut after: Vec<u32> = program.read(&arena).into_iter().map(f32::to_bits).collect();

    // Twice the rounding: the reference is rounded, too.
    let [near_one, near_zero] = rounding(T::ELEMENT);
    let of = |operand| homes.iter().find(|home| home.operand == operand).expect("a home");
    let (o, lse) = (of(Operand::O), of(Operand::Lse));
    for (first, n) in rows(o).into_iter().map(|row| (row, o.inner as usize)) {
        let got: &mut [T] = &mut bytemuck::cast_slice_mut(&mut after)[first..first + n];
        for (got, want) in got.iter_mut().zip(&want.o[first..]) {
            let (x, w) = (got.to_f64() as f32, want.to_f64() as f32);
            let most = 4e-6 + 2.0 * (near_one * w.abs() + near_zero);
            assert!((x - w).abs() <= most, "{name}: O {x}, not {w}");
        }
        got.copy_from_slice(&bytemuck::cast_slice::<u32, T>(&image)[first..first + n]);
    }
    let want = want.lse.expect("wanted");
    for first in rows(lse) {
        let (x, w) = (f32::from_bits(after[first]), want[first]);
        assert!(x == w || (x - w).abs() <= 4e-6, "{name}: LSE {x}, not {w}");
        after[first] = image[first];
    }
    let changed = after.iter().zip(&image).position(|(a, b)| a != b);
    assert_eq!(changed, None, "{name}: something else was written");
}

#[test]
fn operands_of_several_types_share_a_buffer() {
    several_types(2);
}

/// Each kernel with one in so many of the types.
pub fn several_types(step: usize) {
    let program = Program::shared();
    let mut kernels = 0;
    for attention in [&program.attention, &program.split] {
        for method in [Method::Flash, Method::Staged] {
            let types: [fn(&Attention, Method); 4] = [
                |attention, method| {
                    check::<f16, f16>("per token", &per_token(), attention, method);
                },
                |attention, method| {
                    check::<f16, bf16>("apart", &apart::<f16, bf16>(), attention, method);
                },
                |attention, method| {
                    check::<f32, f16>("apart", &apart::<f32, f16>(), attention, method);
                },
                |attention, method| {
                    check::<bf16, f32>("apart", &apart::<bf16, f32>(), attention, method);
                },
            ];
            for check in types.iter().skip(kernels % step).step_by(step) {
                check(attention, method);
            }
            kernels += 1;
        }
        // The other methods get the other types of a split call.
        kernels += 1;
    }
}
