//! What is wrong with a projection or a layer before there are data or a device.

use wgpu_attention::{
    Align, Choice, Error, LayerInputs, Layout, MultiHead, Operand, Problem, Projection,
    ProjectionInputs, Rows, Shape, cpu,
};

use super::{Tensors, check};
use crate::errors::{assert_same, gpu};
use crate::program::Program;
use crate::support::max_error;

const ONE: &str = "at least 1";
const APART: &str = "strides that keep its written rows apart";
const ADDRESSABLE: &str = "at most 2^32 elements from the first to the last one used";

fn size(what: &'static str, need: &'static str, got: u128) -> Error {
    Error::Size { what, need, got }
}

/// The next right calls.
pub fn good() {
    let projection = Projection::new(3, 2, 2).bias();
    let inputs = ProjectionInputs::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1.0, 2.0, 3.0, 4.0]);
    let y = gpu().project(&projection, inputs.bias(&[0.5, 0.25])).expect("a right call");
    assert!(max_error(&y, &[7.5, 10.25, 15.5, 22.25, 23.5, 34.25]) < 1e-5);
    let layer = MultiHead::new(6, Problem::new(Shape::self_attention(1, 2, 5, 4))).biases();
    assert!(check(&gpu(), &layer, 1, None) < super::TOLERANCE);
    Program::shared().check();
}

#[test]
fn projections_that_cannot_be() {
    let new = Projection::new;
    let rows = |offset, stride| Rows { offset, stride };
    let past = 1u128 << 32;
    let misplaced =
        |operand| (new(3, 4, 5).rows(operand, rows(0, 9)), Error::Unexpected { operand });
    let overlap = |got| Error::Stride { operand: Operand::Y, need: APART, got };
    let mut wrong = vec![
        (new(3, 0, 5), size("input", ONE, 0)),
        (new(3, 4, 0), size("output", ONE, 0)),
        (new(0, 0, 0), size("input", ONE, 0)),
        (new(3, 4, 5).rows(Operand::Y, rows(0, 4)), overlap(4)),
        (new(3, 4, 5).rows(Operand::Y, rows(7, 0)), overlap(0)),
        (new(3, 4, 5).rows(Operand::X, rows(u32::MAX, 4)), size("x", ADDRESSABLE, past + 11)),
        (new(3, 4, 5).rows(Operand::W, rows(0, u32::MAX)), {
            size("w", ADDRESSABLE, 3 * (past - 1) + 5)
        }),
        (new(3, 4, 5).bias().rows(Operand::B, rows(u32::MAX, 0)), {
            size("b", ADDRESSABLE, past + 4)
        }),
        (new(3, 4, 5).residual().rows(Operand::Residual, rows(u32::MAX, 0)), {
            size("residual", ADDRESSABLE, past + 4)
        }),
        (new(1 << 20, 1 << 12, 1 << 13), size("y", ADDRESSABLE, 2 * past)),
        (new(u32::MAX, u32::MAX, 1), size("x", ADDRESSABLE, (past - 1) * (past - 1))),
    ];
    let laid_out = [Operand::X, Operand::W, Operand::B, Operand::Residual, Operand::Y];
    wrong.extend(Operand::ALL.iter().filter(|o| !laid_out.contains(o)).copied().map(misplaced));
    for (projection, want) in &wrong {
        let empty = ProjectionInputs::new(&[], &[]);
        let planner = gpu().planner().clone();
        let got = [
            ("validate", projection.validate().err()),
            ("cpu", cpu::project(projection, empty).err()),
            ("host", gpu().project(projection, empty).err()),
            ("plan", planner.plan_projection(projection).err()),
            ("awaited", pollster::block_on(planner.plan_projection_async(projection)).err()),
        ];
        for (whose, got) in got {
            let name = format!("{projection:?}, {whose}");
            assert_same(&name, &got.unwrap_or_else(|| panic!("{name}: accepted")), want);
        }
    }
    println!("{} wrong projections", wrong.len());
    // One row overlaps nothing, and what is only read may repeat.
    for right in [
        new(1, 4, 5).rows(Operand::Y, rows(3, 0)),
        new(0, 4, 5).rows(Operand::Y, rows(3, 0)),
        new(3, 4, 5).rows(Operand::X, rows(0, 0)).rows(Operand::W, rows(1, 0)),
    ] {
        right.validate().expect("legal");
        gpu().planner().plan_projection(&right).expect("a plan");
    }
    good();
}

fn heads() -> Problem {
    Problem::new(Shape::self_attention(2, 2, 5, 4))
}

fn refused(name: &str, layer: &MultiHead, want: &Error) {
    let empty = LayerInputs::new(&[], [&[]; 4]);
    let (gpu, auto) = (gpu(), Choice::default());
    let planner = gpu.planner();
    let got = [
        ("validate", layer.validate().err()),
        ("cpu", cpu::multi_head(layer, empty).err()),
        ("host", gpu.multi_head(layer, empty).err()),
        ("plan", planner.plan_multi_head(layer).err()),
        ("awaited", pollster::block_on(planner.plan_multi_head_async(layer, auto)).err()),
    ];
    for (whose, got) in got {
        let name = format!("{name}, {whose}");
        assert_same(&name, &got.unwrap_or_else(|| panic!("{name}: accepted")), want);
    }
}

#[test]
fn layers_that_cannot_be() {
    let of = |problem: Problem| MultiHead::new(6, problem);
    let unexpected = |operand| Error::Unexpected { operand };
    let laid_out = |operand| of(heads().layout(operand, Layout::head_major(2, 5, 4)));
    let shape = heads().shape();
    let past = 1u128 << 32;
    let same = "q_len, as keys come from the same tokens unless there is a context";
    let product = "a product below 2^32";
    let empty = Shape { q_len: 0, kv_len: 0, ..shape };
    let wide = |q_heads, head_dim, value_dim| {
        of(Problem::new(Shape { q_heads, kv_heads: q_heads, head_dim, value_dim, ..empty }))
    };
    let long = of(Problem::new(Shape::self_attention(1 << 16, 1, 1 << 16, 1)));
    let projected = MultiHead::new(1, Problem::new(Shape::self_attention(1, 1 << 11, 1 << 20, 1)));
    let wrong = [
        ("no d_model", MultiHead::new(0, heads()), size("d_model", ONE, 0)),
        ("no d_model, context", MultiHead::new(0, heads()).context(4), size("d_model", ONE, 0)),
        ("no context_dim", of(heads()).context(0), size("context_dim", ONE, 0)),
        ("q laid out", laid_out(Operand::Q), unexpected(Operand::Q)),
        ("k laid out", laid_out(Operand::K), unexpected(Operand::K)),
        ("v laid out", laid_out(Operand::V), unexpected(Operand::V)),
        ("o laid out", laid_out(Operand::O), unexpected(Operand::O)),
        ("x laid out", laid_out(Operand::X), unexpected(Operand::X)),
        ("arena", of(heads().arena()), unexpected(Operand::Arena)),
        ("fewer keys", of(Problem::new(shape.kv_len(4))), size("kv_len", same, 4)),
        ("no keys", of(Problem::new(shape.kv_len(0))), size("kv_len", same, 0)),
        (
            "cross, causal",
            of(Problem::new(shape.kv_len(4)).causal()).context(6),
            Error::Align { q_len: 5, kv_len: 4 },
        ),
        ("no head_dim", wide(2, 0, 4), size("head_dim", ONE, 0)),
        ("no value_dim", wide(2, 4, 0), size("value_dim", ONE, 0)),
        ("groups", of(Problem::new(shape.kv_heads(3))), {
            Error::HeadGroups { q_heads: 2, kv_heads: 3 }
        }),
        ("tokens", long, size("batch * q_len", product, past)),
        ("q dims", wide(1 << 16, 1 << 16, 1), size("q_heads * head_dim", product, past)),
        ("v dims", wide(1 << 16, 1, 1 << 16), size("kv_heads * value_dim", product, past)),
        ("projected", projected, {
            size("projected", "less than 2^32 elements of queries, keys and values", past)
        }),
    ];
    wrong.iter().for_each(|(name, layer, want)| refused(name, layer, want));
    println!("{} wrong layers", wrong.len());
    of(Problem::new(shape.kv_len(4)).causal().align(Align::BottomRight))
        .context(6)
        .validate()
        .expect("legal");
    good();
}

/// Whatever the numbers, an answer and no panic.
#[test]
fn absurd_sizes() {
    let (most, one) = (u32::MAX, Shape::self_attention(1, 1, 1, 1));
    let shapes = [
        one,
        Shape { batch: most, q_heads: most, kv_heads: most, head_dim: most, ..one },
        Shape { batch: most, q_len: most, kv_len: most, value_dim: most, ..one },
        Shape { q_len: 1 << 30, kv_len: 1 << 30, head_dim: 4, value_dim: 4, ..one },
        Shape { batch: most, ..one },
        Shape { batch: 0, q_heads: most, kv_heads: most, ..one },
        Shape { q_heads: 0, kv_heads: 0, head_dim: 0, value_dim: 0, ..one },
    ];
    let mut refused = 0;
    for shape in shapes {
        for dim in [0, 1, 1 << 16, most] {
            let full = [shape.batch, shape.q_heads, shape.q_len, shape.kv_len];
            let problem = Problem::new(shape).lse().weights().scores().bias_shape(&full);
            let layer = MultiHead::new(dim, problem).biases().residual();
            let projection = Projection::new(shape.batch, dim, most).bias().residual();
            for layer in [layer.clone(), layer.context(dim)] {
                for &operand in Operand::ALL {
                    let bytes =
                        layer.elements(operand) as f64 + projection.elements(operand) as f64;
                    assert!(bytes >= 0.0);
                }
                let Err(want) = layer.validate() else { continue };
                refused += 1;
                self::refused("absurd", &layer, &want);
            }
        }
    }
    println!("{refused} absurd layers");
    assert!(refused > 40);
    good();
}

/// 64 x 8 heads x 1024 tokens x 64 dims: every tensor fits a binding of 128 MiB, the three
/// projected ones together pass the largest buffer of 256 MiB.
#[test]
fn projected_tensors_that_pass_the_largest_buffer() {
    let layer = MultiHead::new(512, Problem::new(Shape::self_attention(64, 8, 1024, 64)));
    let want = Error::Limit { what: "projected", need: 384 << 20, got: 256 << 20 };
    let planner = gpu().planner().clone();
    let got = [
        planner.plan_multi_head(&layer).err(),
        pollster::block_on(planner.plan_multi_head_async(&layer, Choice::default())).err(),
    ];
    got.into_iter().for_each(|got| assert_same("plan", &got.expect("too large"), &want));
    let fits = MultiHead::new(512, Problem::new(Shape::self_attention(32, 8, 1024, 64)));
    planner.plan_multi_head(&fits).expect("192 MiB fit");
    good();
}

/// Weights of 65,000 tokens would be 17 GB. `tests/allocations.rs` counts what the refusal takes.
#[test]
fn weights_that_pass_the_largest_binding() {
    let tokens = 65_000u32;
    let problem = Problem::new(Shape::self_attention(1, 1, tokens, 4)).weights();
    let need = 4 * u64::from(tokens) * u64::from(tokens);
    let want = Error::Limit { what: "weights", need, got: 128 << 20 };
    let x = vec![0.5; 4 * tokens as usize];
    let inputs = wgpu_attention::Inputs::new(&x, &x, &x);
    let layer = MultiHead::new(4, problem.clone());
    let tensors = Tensors::new(&layer, 1);
    let got = gpu().attention(&problem, inputs).expect_err("17 GB");
    assert_same("attention", &got, &want);
    let got = gpu().multi_head(&layer, tensors.inputs()).expect_err("17 GB");
    assert_same("layer", &got, &want);
    good();
}
