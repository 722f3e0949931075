//! candle on the CPU: matmul, softmax, matmul.

use candle_core::{Device, Tensor};

use crate::{Case, Peer};

pub struct Candle {
    q: Vec<f32>,
    shape: (usize, usize, usize),
    k_transposed: Tensor,
    v: Tensor,
    scale: f64,
}

impl Candle {
    pub fn new(case: &Case) -> Candle {
        let (heads, keys, dim) = (case.heads as usize, case.keys as usize, case.dim as usize);
        let tensor = |rows: &[f32]| Tensor::from_slice(rows, (heads, keys, dim), &Device::Cpu);
        let k = tensor(&case.k).expect("keys");
        Candle {
            q: case.q.clone(),
            shape: (heads, case.rows as usize, dim),
            k_transposed: k.t().expect("two axes"),
            v: tensor(&case.v).expect("values"),
            scale: 1.0 / f64::from(case.dim).sqrt(),
        }
    }

    fn attention(&self) -> candle_core::Result<Vec<f32>> {
        let q = Tensor::from_slice(&self.q, self.shape, &Device::Cpu)?;
        let scores = (q.matmul(&self.k_transposed)? * self.scale)?;
        let weights = candle_nn::ops::softmax_last_dim(&scores)?;
        weights.matmul(&self.v)?.flatten_all()?.to_vec1()
    }
}

impl Peer for Candle {
    fn name(&self) -> String {
        "candle 0.9.2, CPU".into()
    }

    fn run(&mut self) -> Vec<f32> {
        self.attention().expect("an output")
    }
}
