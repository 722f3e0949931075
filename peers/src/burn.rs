//! burn's own attention on wgpu.

use ::burn::tensor::module::attention;
use ::burn::tensor::{Device, DeviceKind, Tensor, TensorData};

use crate::{Case, Peer};

pub struct Burn {
    device: Device,
    q: Vec<f32>,
    rows: [usize; 4],
    k: Tensor<4>,
    v: Tensor<4>,
}

impl Burn {
    pub fn new(case: &Case) -> Burn {
        let device = Device::wgpu(DeviceKind::DefaultDevice);
        let (heads, keys, dim) = (case.heads as usize, case.keys as usize, case.dim as usize);
        let tensor = |rows: &[f32]| {
            let data = TensorData::new(rows.to_vec(), [1, heads, keys, dim]);
            Tensor::<4>::from_data(data, &device)
        };
        let (k, v) = (tensor(&case.k), tensor(&case.v));
        Burn { k, v, q: case.q.clone(), rows: [1, heads, case.rows as usize, dim], device }
    }
}

impl Peer for Burn {
    fn name(&self) -> String {
        "burn 0.23.0-pre.1, wgpu".into()
    }

    fn run(&mut self) -> Vec<f32> {
        let q = Tensor::<4>::from_data(TensorData::new(self.q.clone(), self.rows), &self.device);
        let (k, v) = (self.k.clone(), self.v.clone());
        let o = attention(q, k, v, None, None, Default::default());
        o.into_data().try_to_vec::<f32>().expect("f32")
    }
}
