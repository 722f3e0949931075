//! Host slices that do not fit: the CPU and the GPU refuse the same ones in the same words.

use wgpu_attention::{
    BiasLayout, Choice, Error, Inputs, Layout, Operand, Problem, Shape, Tile, cpu,
};

use super::{assert_same, good, gpu};
use crate::program::Program;

const SHAPE: Shape =
    Shape { q_len: 3, ..Shape::self_attention(2, 4, 5, 6) }.kv_heads(2).value_dim(7);

fn refused(name: &str, problem: &Problem, inputs: Inputs<'_>, want: &Error) {
    let gpu = gpu();
    let tile = Tile { queries: 4, keys: 8 };
    let got = [
        cpu::attention(problem, inputs).err(),
        cpu::flash(problem, inputs, tile, None).err(),
        cpu::row(problem, inputs, [0; 3]).err(),
        gpu.attention(problem, inputs).err(),
        pollster::block_on(gpu.attention_async(problem, inputs, Choice::default())).err(),
    ];
    for got in got {
        assert_same(name, &got.unwrap_or_else(|| panic!("{name}: accepted")), want);
    }
}

#[test]
fn wrong_lengths() {
    let plain = Problem::new(SHAPE);
    let biased = plain.clone().bias_shape(&[3, 5]);
    let (q, k, v, bias) = ([0.5; 144], [0.5; 120], [0.5; 140], [0.5; 15]);
    let length = |operand, need, got| Error::Length { operand, need, got };
    refused("short q", &plain, Inputs::new(&q[1..], &k, &v), &length(Operand::Q, 144, 143));
    refused("long q", &plain, Inputs::new(&[0.5; 145], &k, &v), &length(Operand::Q, 144, 145));
    refused("no k", &plain, Inputs::new(&q, &[], &v), &length(Operand::K, 120, 0));
    refused("long k", &plain, Inputs::new(&q, &q, &v), &length(Operand::K, 120, 144));
    refused("short v", &plain, Inputs::new(&q, &k, &k), &length(Operand::V, 140, 120));
    let inputs = Inputs::new(&q, &k, &v);
    refused("no bias", &biased, inputs, &Error::Missing { operand: Operand::Bias });
    refused("a bias", &plain, inputs.bias(&bias), &Error::Unexpected { operand: Operand::Bias });
    refused(
        "an empty bias",
        &plain,
        inputs.bias(&[]),
        &Error::Unexpected { operand: Operand::Bias },
    );
    refused("short bias", &biased, inputs.bias(&bias[1..]), &length(Operand::Bias, 15, 14));
    refused("long bias", &biased, inputs.bias(&[0.5; 16]), &length(Operand::Bias, 15, 16));

    // With a layout of its own a slice may be part of something larger, not of something smaller.
    let token_major = Layout::token_major(4, 3, 6).at(10);
    let laid_out = plain.clone().layout(Operand::Q, token_major);
    refused("strides past q", &laid_out, inputs, &length(Operand::Q, 154, 144));
    let strided = plain.bias(BiasLayout { offset: 2, query: 9, key: 1, ..Default::default() });
    refused("strides past bias", &strided, inputs.bias(&bias), &length(Operand::Bias, 25, 15));
    let long = [0.5; 200];
    let both = laid_out.bias(BiasLayout { offset: 2, query: 9, key: 1, ..Default::default() });
    let inputs = Inputs::new(&long, &k, &v).bias(&long);
    let cpu = cpu::attention(&both, inputs).expect("a long slice with a layout is legal");
    let gpu = gpu().attention(&both, inputs).expect("a long slice with a layout is legal");
    assert!(crate::support::max_error(&gpu.o, &cpu.o) < 1e-5);
    good(&super::gpu());
    Program::shared().check();
}

#[test]
fn rows_that_do_not_exist() {
    let problem = Problem::new(SHAPE);
    let (q, k, v) = ([0.5; 144], [0.5; 120], [0.5; 140]);
    let inputs = Inputs::new(&q, &k, &v);
    let need = "an index below the shape's";
    for (at, what, got) in [
        ([2, 0, 0], "batch", 2),
        ([0, 4, 0], "head", 4),
        ([0, 0, 3], "query", 3),
        ([u32::MAX; 3], "batch", u32::MAX),
    ] {
        let error = cpu::row(&problem, inputs, at).expect_err("no such row");
        assert_same("row", &error, &Error::Size { what, need, got: got.into() });
    }
    let row = cpu::row(&problem, inputs, [1, 3, 2]).expect("the last row");
    assert_eq!(row.o, vec![0.5; 7]);
}

/// A bias given by its shape has all of that shape, also where an empty axis leaves none in use.
#[test]
fn biases_of_empty_problems() {
    let square = Shape::self_attention(2, 4, 5, 6);
    let biases: [(&str, Shape, Vec<u32>); 5] = [
        ("no batch", Shape { batch: 0, ..square }, vec![5, 5]),
        ("no queries", Shape { q_len: 0, ..square }, vec![5]),
        ("no keys", square.kv_len(0), vec![5, 1]),
        ("no keys, per head", square.kv_len(0), vec![4, 1, 1]),
        ("nothing", Shape { batch: 0, q_len: 0, kv_len: 0, ..square }, vec![4, 1, 1]),
    ];
    for (name, shape, bias_shape) in biases {
        let problem = Problem::new(shape).bias_shape(&bias_shape).lse();
        let n = bias_shape.iter().product::<u32>() as usize;
        let data = crate::support::Data::new(&problem, 1);
        let inputs = Inputs::new(&data.q, &data.k, &data.v);
        let bias = vec![0.5; n + 1];
        for problem in [problem.clone(), problem.scores().weights()] {
            let want = cpu::attention(&problem, inputs.bias(&bias[..n])).expect(name);
            let got = gpu().attention(&problem, inputs.bias(&bias[..n])).expect(name);
            assert_eq!(got, want, "{name}");
            assert_eq!(got.o.len() as u64, problem.elements(Operand::O), "{name}");
            assert!(got.o.iter().all(|&o| o == 0.0), "{name}");
            let lse = got.lse.expect("wanted");
            assert!(lse.iter().all(|&lse| lse == f32::NEG_INFINITY), "{name}");
            for got in [n - 1, n + 1] {
                let need = n as u64;
                let want = Error::Length { operand: Operand::Bias, need, got: got as u64 };
                refused(name, &problem, inputs.bias(&bias[..got]), &want);
            }
        }
    }
    good(&gpu());
}
