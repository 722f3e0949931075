//! Host slices of projections and layers that do not fit: refused by the CPU and the GPU in the
//! same words.

use wgpu_attention::{
    Choice, Error, LayerInputs, MultiHead, Operand, Problem, Projection, ProjectionInputs, Rows,
    Shape, cpu,
};

use super::errors::good;
use super::{BIASES, Tensors, WEIGHTS};
use crate::errors::{assert_same, gpu};
use crate::support::max_error;

fn project(projection: &Projection, inputs: ProjectionInputs<'_>, want: &Error) {
    let got = [
        cpu::project(projection, inputs).err(),
        gpu().project(projection, inputs).err(),
        pollster::block_on(gpu().project_async(projection, inputs)).err(),
    ];
    for got in got {
        let name = format!("{projection:?}");
        assert_same(&name, &got.unwrap_or_else(|| panic!("{name}: accepted {want}")), want);
    }
}

#[test]
fn wrong_slices_of_projections() {
    let x = [0.5f32; 40];
    let plain = Projection::new(3, 4, 5);
    let both = plain.clone().bias().residual();
    let new = |x_len: usize, w_len: usize| ProjectionInputs::new(&x[..x_len], &x[..w_len]);
    let right = new(12, 20);
    let all = right.bias(&x[..5]).residual(&x[..15]);
    let length = |operand, need, got| Error::Length { operand, need, got };
    use Operand::{B, Residual, W, X};
    for (projection, inputs, want) in [
        (&plain, new(11, 20), length(X, 12, 11)),
        (&plain, new(13, 20), length(X, 12, 13)),
        (&plain, new(0, 20), length(X, 12, 0)),
        (&plain, new(12, 19), length(W, 20, 19)),
        (&plain, new(12, 21), length(W, 20, 21)),
        (&plain, right.bias(&x[..5]), Error::Unexpected { operand: B }),
        (&plain, right.residual(&x[..15]), Error::Unexpected { operand: Residual }),
        (&both, right.residual(&x[..15]), Error::Missing { operand: B }),
        (&both, right.bias(&x[..5]), Error::Missing { operand: Residual }),
        (&both, all.bias(&x[..4]), length(B, 5, 4)),
        (&both, all.bias(&x[..6]), length(B, 5, 6)),
        (&both, all.residual(&x[..14]), length(Residual, 15, 14)),
        (&both, all.residual(&x[..16]), length(Residual, 15, 16)),
        // With rows of its own a slice may be part of something larger, not of something smaller.
        (
            &plain.clone().rows(X, Rows { offset: 2, stride: 7 }),
            new(19, 20),
            length(X, 2 + 14 + 4, 19),
        ),
    ] {
        project(projection, inputs, &want);
    }
    let laid_out = both.rows(X, Rows { offset: 2, stride: 7 });
    let inputs = new(40, 20).bias(&x[..5]).residual(&x[..15]);
    let y = gpu().project(&laid_out, inputs).expect("a long slice with rows of its own");
    assert!(max_error(&y, &[2.0; 15]) < 1e-6);
    good();
}

fn refused(name: &str, layer: &MultiHead, inputs: LayerInputs<'_>, want: &Error) {
    let awaited = gpu();
    let got = [
        cpu::multi_head(layer, inputs).err(),
        gpu().multi_head(layer, inputs).err(),
        pollster::block_on(awaited.multi_head_async(layer, inputs, Choice::default())).err(),
    ];
    for got in got {
        assert_same(name, &got.unwrap_or_else(|| panic!("{name}: accepted")), want);
    }
}

#[test]
fn wrong_slices_of_layers() {
    let shape = Shape { q_len: 5, ..Shape::self_attention(2, 4, 7, 3) }.kv_heads(2).value_dim(6);
    let layer = MultiHead::new(10, Problem::new(shape).bias_shape(&[5, 7])).context(9).biases();
    let mut wrong = 0;
    let operands = [Operand::X, Operand::Context, Operand::Bias];
    for operand in operands.into_iter().chain(WEIGHTS).chain(BIASES) {
        let need = layer.elements(operand);
        for got in [need - 1, need + 1, 0] {
            let mut tensors = Tensors::new(&layer, 3);
            tensors.get_mut(operand).resize(got as usize, 0.5);
            let mut inputs = tensors.inputs();
            inputs.extras.bias = Some(tensors.get(Operand::Bias));
            let want = Error::Length { operand, need, got };
            refused(&format!("{got} of {operand}"), &layer, inputs, &want);
            wrong += 1;
        }
    }
    println!("{wrong} wrong slices");
    assert_eq!(wrong, 33);

    let tensors = Tensors::new(&layer, 3);
    let without = |change: fn(&mut LayerInputs<'_>)| {
        let mut inputs = tensors.inputs();
        change(&mut inputs);
        inputs
    };
    let missing = |operand| Error::Missing { operand };
    refused("no context", &layer, without(|i| i.context = None), &missing(Operand::Context));
    refused("no biases", &layer, without(|i| i.biases = None), &missing(Operand::Bq));
    refused("no bias", &layer, without(|i| i.extras.bias = None), &missing(Operand::Bias));
    let plain = MultiHead::new(10, Problem::new(Shape { q_len: 7, ..shape }));
    let own = Tensors::new(&plain, 3);
    let unexpected = |operand| Error::Unexpected { operand };
    let inputs = own.inputs();
    let context = tensors.get(Operand::Context);
    refused("a context", &plain, inputs.context(context), &unexpected(Operand::Context));
    refused("an empty context", &plain, inputs.context(&[]), &unexpected(Operand::Context));
    let biases = BIASES.map(|operand| tensors.get(operand));
    refused("biases", &plain, inputs.biases(biases), &unexpected(Operand::Bq));
    let bias = tensors.get(Operand::Bias);
    refused("a bias", &plain, inputs.bias(bias), &unexpected(Operand::Bias));
    good();
}
