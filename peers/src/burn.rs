//! burn's own attention on wgpu.

use std::time::Instant;

use ::burn::tensor::module::attention;
use ::burn::tensor::ops::AttentionModuleOptions;
use ::burn::tensor::{Device, DeviceKind, Tensor, TensorData};

use crate::case::Case;
use crate::compare::Peer;

pub struct Burn {
    device: Device,
    rows: Vec<f32>,
    shape: [usize; 4],
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    causal: bool,
}

impl Burn {
    pub fn new(case: &Case) -> Result<Burn, String> {
        let device = Device::wgpu(DeviceKind::DefaultDevice);
        let tensor = |rows: &[f32], tokens: u32| {
            let data = TensorData::new(rows.to_vec(), shape(case, tokens));
            Tensor::<4>::from_data(data, &device)
        };
        let q = tensor(&case.q, case.rows);
        let (k, v) = (tensor(&case.k, case.keys), tensor(&case.v, case.keys));
        device.sync().map_err(|error| format!("{error:?}"))?;
        let (rows, shape, causal) = (case.q.clone(), shape(case, case.rows), case.causal());
        Ok(Burn { device, rows, shape, q, k, v, causal })
    }

    fn attention(&self, q: Tensor<4>) -> Tensor<4> {
        let options = AttentionModuleOptions { is_causal: self.causal, ..Default::default() };
        attention(q, self.k.clone(), self.v.clone(), None, None, options)
    }
}

/// `[batch, head, token, dim]`
fn shape(case: &Case, tokens: u32) -> [usize; 4] {
    [1, case.heads as usize, tokens as usize, case.dim as usize]
}

impl Peer for Burn {
    fn name(&self) -> String {
        "burn, wgpu".into()
    }

    fn first(&mut self) -> Result<f64, String> {
        self.call()
    }

    fn call(&mut self) -> Result<f64, String> {
        let begun = Instant::now();
        let output = self.attention(self.q.clone());
        self.device.sync().map_err(|error| format!("{error:?}"))?;
        let seconds = begun.elapsed().as_secs_f64();
        // An output that nobody holds might not be computed.
        drop(output);
        Ok(seconds)
    }

    fn output(&mut self) -> Option<Vec<f32>> {
        let data = TensorData::new(self.rows.clone(), self.shape);
        let output = self.attention(Tensor::<4>::from_data(data, &self.device));
        Some(output.into_data().try_to_vec::<f32>().expect("f32"))
    }
}
