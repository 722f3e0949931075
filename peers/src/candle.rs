//! candle on the CPU: matmul, softmax, matmul, or its fused kernel.

use std::time::Instant;

use candle_core::{Device, Result, Tensor};
use candle_nn::cpu_flash_attention::run_flash_attn_cpu;

use crate::case::Case;
use crate::compare::Peer;

pub struct Candle {
    flash: bool,
    rows: Vec<f32>,
    /// `[1, head, token, dim]` each.
    q: Tensor,
    k: Tensor,
    v: Tensor,
    /// `[row, key]`
    mask: Option<Tensor>,
    scale: f64,
}

impl Candle {
    pub fn new(case: &Case, flash: bool) -> Result<Candle> {
        let (heads, dim) = (case.heads as usize, case.dim as usize);
        let tensor = |rows: &[f32], tokens: u32| {
            Tensor::from_slice(rows, (1, heads, tokens as usize, dim), &Device::Cpu)
        };
        let shape = (case.rows as usize, case.keys as usize);
        let mask = case.mask().map(|mask| Tensor::from_vec(mask, shape, &Device::Cpu));
        Ok(Candle {
            flash,
            rows: case.q.clone(),
            q: tensor(&case.q, case.rows)?,
            k: tensor(&case.k, case.keys)?,
            v: tensor(&case.v, case.keys)?,
            mask: mask.transpose()?,
            scale: 1.0 / f64::from(case.dim).sqrt(),
        })
    }

    fn attention(&self, q: &Tensor) -> Result<Tensor> {
        if self.flash {
            // Its shapes are [batch, token, head, dim]; as views, so that nothing is moved.
            let [q, k, v] = [q, &self.k, &self.v].map(|x| x.transpose(1, 2));
            let (mask, scale) = (self.mask.as_ref(), self.scale as f32);
            return run_flash_attn_cpu::<f32>(&q?, &k?, &v?, mask, scale, None, None);
        }
        let mut scores = (q.matmul(&self.k.t()?)? * self.scale)?;
        if let Some(mask) = &self.mask {
            scores = scores.broadcast_add(mask)?;
        }
        candle_nn::ops::softmax_last_dim(&scores)?.matmul(&self.v)
    }
}

impl Peer for Candle {
    fn name(&self) -> String {
        match self.flash {
            false => "candle, CPU, matmul softmax matmul".into(),
            true => "candle, CPU, run_flash_attn_cpu".into(),
        }
    }

    fn first(&mut self) -> std::result::Result<f64, String> {
        self.call()
    }

    fn call(&mut self) -> std::result::Result<f64, String> {
        let begun = Instant::now();
        let output = self.attention(&self.q).map_err(|error| error.to_string())?;
        let seconds = begun.elapsed().as_secs_f64();
        drop(std::hint::black_box(output));
        Ok(seconds)
    }

    fn output(&mut self) -> Option<Vec<f32>> {
        let run = || -> Result<Vec<f32>> {
            let q = Tensor::from_slice(&self.rows, self.q.shape(), &Device::Cpu)?;
            self.attention(&q)?.flatten_all()?.to_vec1()
        };
        Some(run().expect("an output"))
    }
}
