//! The case table: problems as data, hand-picked at the edges and drawn from seeds in between.
//!
//! A case says what is computed from what; which kernel computes it, and which outputs besides O
//! are wanted, is for the test that runs the table.

mod drawn;
mod given;
mod layouts;
mod lengths;
mod masks;
mod packed;
mod terms;
mod types;

use wgpu_attention::{Align, Band, BiasLayout, Element, Layout, Operand, Problem, Shape};

use crate::data::Given;
pub use layouts::packed_rows;

/// One problem with random operands.
#[derive(Clone)]
pub struct Case {
    pub name: String,
    pub problem: Problem,
    pub seed: u64,
    /// Every so many elements of the bias are -inf; 0 for none.
    pub excluded: usize,
    pub given: Given,
    /// What Q and O, and K and V, are stored as.
    pub types: [Element; 2],
    /// Rows that no sequence has hold NaN.
    pub poisoned: bool,
}

/// A case whose bias, if it has one, excludes nothing.
pub fn case(name: impl Into<String>, problem: Problem) -> Case {
    let name = name.into();
    // From the name, so that a new case leaves the numbers of the others alone.
    let seed = name.bytes().fold(0u64, |seed, byte| (31 * seed + u64::from(byte)) % 1_000_003);
    let (given, types) = (Given::default(), [Element::F32; 2]);
    Case { name, problem, seed, excluded: 0, given, types, poisoned: false }
}

/// `[batch, q_heads, kv_heads, q_len, kv_len, head_dim, value_dim]`.
fn shape([batch, heads, kv_heads, q_len, kv_len, dim, value_dim]: [u32; 7]) -> Shape {
    let shape = Shape::self_attention(batch, heads, q_len, dim).kv_heads(kv_heads);
    shape.kv_len(kv_len).value_dim(value_dim)
}

/// Where most options are tried: few kernels to compile, more than one tile of keys.
const USUAL: [u32; 7] = [2, 4, 2, 21, 75, 8, 8];

fn usual() -> Problem {
    Problem::new(shape(USUAL))
}

/// What is broadcast to the usual scores.
const BROADCASTS: [&[u32]; 15] = {
    let [b, h, _, q, k, ..] = USUAL;
    [
        &[],
        &[1],
        &[k],
        &[q, k],
        &[q, 1],
        &[1, k],
        &[h, q, k],
        &[h, 1, k],
        &[h, 1, 1],
        &[b, 1, 1, k],
        &[b, h, 1, 1],
        &[b, h, q, k],
        &[b, 1, q, k],
        &[b, h, q, 1],
        &[1, h, 1, k],
    ]
};

/// Strides likewise, `[offset, batch, head, query, key]`; the last ones are a sliding window over
/// one row.
const BROADCAST_STRIDES: [[u32; 5]; 5] = {
    let [_, _, _, q, k, ..] = USUAL;
    [[0; 5], [5, 0, 0, k, 1], [101, 0, 1, 0, 0], [3, 4 * q, q, 1, 0], [9, 7, 11, 1, 1]]
};

/// Every case.
pub fn all() -> Vec<Case> {
    let mut all = Vec::new();
    all.extend(DIMS.iter().map(|&[dim, value_dim]| {
        let problem = Problem::new(shape([1, 2, 1, 19, 40, dim, value_dim]));
        case(format!("head_dim {dim}, value_dim {value_dim}"), problem)
    }));
    all.extend(SIZES.iter().map(|&[batch, heads, kv_heads, q_len, kv_len]| {
        let size = format!("batch {batch}, heads {heads}/{kv_heads}, lengths {q_len} x {kv_len}");
        case(size, Problem::new(shape([batch, heads, kv_heads, q_len, kv_len, 8, 8])))
    }));
    all.extend(BANDS.iter().map(|&(left, right, align, [q_len, kv_len])| {
        let name = format!("{q_len} x {kv_len}, left {left:?}, right {right:?}, {align:?}");
        let problem = Problem::new(shape([1, 2, 1, q_len, kv_len, 8, 8]));
        case(name, problem.band(Band { left, right }).align(align))
    }));
    all.extend(scales());
    all.extend(biases());
    all.extend(layouts::all());
    all.push(everything());
    all.extend(masks::all());
    all.extend(lengths::all());
    all.extend(packed::all());
    all.extend(terms::all());
    all.extend(types::all());
    all.extend((0..drawn::CASES).map(drawn::case));
    all
}

/// `[head_dim, value_dim]`.
const DIMS: [[u32; 2]; 21] = [
    [1, 1],
    [2, 2],
    [3, 3],
    [5, 5],
    [7, 7],
    [8, 8],
    [16, 16],
    [31, 31],
    [40, 40],
    [64, 64],
    [80, 80],
    [96, 96],
    [128, 128],
    [129, 129],
    [192, 128],
    [256, 256],
    [320, 256],
    [576, 512],
    [8, 24],
    [64, 3],
    [1, 576],
];

/// `[batch, q_heads, kv_heads, q_len, kv_len]`.
const SIZES: [[u32; 5]; 30] = [
    [0, 2, 1, 5, 5],
    [2, 2, 1, 0, 5],
    [2, 2, 1, 5, 0],
    [1, 1, 1, 0, 0],
    [0, 1, 1, 0, 0],
    [1, 1, 1, 1, 1],
    [1, 1, 1, 1, 257],
    [1, 1, 1, 257, 1],
    [1, 2, 2, 2, 2],
    [1, 2, 2, 3, 5],
    [1, 2, 2, 5, 3],
    [1, 1, 1, 17, 31],
    [1, 1, 1, 31, 32],
    [1, 1, 1, 32, 33],
    [1, 1, 1, 33, 17],
    [1, 1, 1, 63, 64],
    [1, 1, 1, 64, 65],
    [1, 1, 1, 65, 63],
    [1, 1, 1, 127, 129],
    [1, 1, 1, 129, 127],
    [1, 1, 1, 257, 257],
    [1, 1, 1, 3, 129],
    [1, 1, 1, 17, 257],
    [5, 1, 1, 5, 17],
    [3, 3, 3, 17, 33],
    [2, 6, 6, 33, 31],
    [2, 6, 3, 33, 31],
    [2, 6, 2, 33, 31],
    [2, 6, 1, 33, 31],
    [1, 32, 8, 3, 65],
];

const ALL: Option<u32> = Some(u32::MAX);
const LONG: [u32; 2] = [33, 65];
const WIDE: [u32; 2] = [129, 33];

/// (left, right, align, `[q_len, kv_len]`).
type BandRow = (Option<u32>, Option<u32>, Align, [u32; 2]);

const BANDS: [BandRow; 36] = [
    (None, Some(0), Align::TopLeft, [65, 65]),
    (None, Some(0), Align::BottomRight, [65, 65]),
    (None, Some(0), Align::TopLeft, LONG),
    (None, Some(0), Align::BottomRight, LONG),
    (None, Some(0), Align::TopLeft, WIDE),
    (None, Some(0), Align::BottomRight, WIDE),
    (None, Some(0), Align::BottomRight, [1, 129]),
    (None, Some(0), Align::TopLeft, [1, 129]),
    (None, Some(0), Align::BottomRight, [5, 64]),
    (None, Some(0), Align::BottomRight, [5, 0]),
    (None, Some(0), Align::Shift(7), LONG),
    (None, Some(0), Align::Shift(-7), LONG),
    (None, Some(0), Align::Shift(-40), LONG),
    (None, Some(0), Align::Shift(64), LONG),
    (None, Some(0), Align::Shift(1000), LONG),
    (None, Some(0), Align::Shift(-1000), LONG),
    (None, Some(0), Align::Shift(i32::MAX), LONG),
    (None, Some(0), Align::Shift(i32::MIN), LONG),
    (Some(0), None, Align::TopLeft, LONG),
    (Some(0), None, Align::BottomRight, WIDE),
    (Some(3), None, Align::Shift(50), LONG),
    (Some(0), None, Align::Shift(i32::MAX), LONG),
    (Some(0), None, Align::Shift(i32::MIN), LONG),
    (Some(0), Some(0), Align::TopLeft, [65, 65]),
    (Some(0), Some(0), Align::BottomRight, WIDE),
    (Some(5), Some(0), Align::BottomRight, LONG),
    (Some(5), Some(3), Align::TopLeft, [65, 65]),
    (Some(32), Some(31), Align::TopLeft, [129, 129]),
    (Some(1), Some(64), Align::Shift(-20), WIDE),
    (Some(2), Some(2), Align::Shift(90), LONG),
    (ALL, ALL, Align::TopLeft, WIDE),
    (None, ALL, Align::BottomRight, WIDE),
    (ALL, Some(0), Align::BottomRight, LONG),
    (ALL, Some(1), Align::Shift(i32::MIN), LONG),
    (Some(1), ALL, Align::Shift(i32::MAX), LONG),
    (None, Some(0x7fff_ffff), Align::TopLeft, WIDE),
];

/// Scale and softcap, alone and together.
fn scales() -> Vec<Case> {
    let scales = [0.0, -0.0, -0.35, 1.0, 4.0, -30.0, 1e-30].map(|scale| (Some(scale), 0.0));
    let softcaps =
        [(None, 0.5), (None, 50.0), (None, 1000.0), (Some(4.0), 20.0), (Some(-9.0), 1.0)];
    let row = |(scale, softcap): (Option<f32>, f32)| {
        let problem = usual().softcap(softcap);
        let problem = scale.map_or(problem.clone(), |scale| problem.scale(scale));
        case(format!("scale {scale:?}, softcap {softcap}"), problem)
    };
    scales.into_iter().chain(softcaps).map(row).collect()
}

/// Bias by shape and by strides, with and without excluded keys.
fn biases() -> Vec<Case> {
    let [b, h, _, q, k, ..] = USUAL;
    let strides = |[offset, batch, head, query, key]: [u32; 5]| {
        usual().bias(BiasLayout { offset, batch, head, query, key })
    };
    let mut all: Vec<_> =
        BROADCASTS.map(|s| case(format!("bias {s:?}"), usual().bias_shape(s))).into();
    all.extend(BROADCAST_STRIDES.map(|row| case(format!("bias strides {row:?}"), strides(row))));
    let excluded = [2, 3, 7, 76].map(|n| Case {
        excluded: n,
        ..case(format!("one bias of {n} excludes"), usual().bias_shape(&[h, q, k]))
    });
    all.extend(excluded);
    let masked = [[k].as_slice(), &[b, 1, 1, k], &[q, 1]].map(|s| Case {
        excluded: 3,
        ..case(format!("bias {s:?}, one of 3 excludes"), usual().bias_shape(s))
    });
    all.extend(masked);
    all
}

/// All options in one problem, on rows that are no whole quads.
fn everything() -> Case {
    let problem = Problem::new(shape([2, 6, 3, 41, 83, 6, 10]))
        .band(Band { left: Some(50), right: Some(4) })
        .align(Align::BottomRight)
        .scale(-1.5)
        .softcap(3.0)
        .bias_shape(&[2, 1, 41, 83])
        .layout(Operand::Q, Layout::token_major(6, 41, 6).at(7))
        .layout(Operand::K, packed_rows(0, 2, 3, 83, 8))
        .layout(Operand::V, packed_rows(0, 2, 3, 83, 10))
        .layout(Operand::O, Layout::token_major(6, 41, 10).at(1))
        .layout(Operand::Lse, Layout::token_major(6, 41, 1));
    Case { excluded: 5, ..case("everything", problem) }
}
