//! One tensor of a file, read as what it is needed for.

use bytemuck::Pod;
use half::{bf16, f16};
use safetensors::Dtype;

/// A tensor whose data has the size that its type and shape say.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    pub name: &'a str,
    pub dtype: Dtype,
    pub shape: &'a [usize],
    pub data: &'a [u8],
}

impl Tensor<'_> {
    /// The elements as they are stored.
    pub fn stored<T: Pod>(&self) -> Vec<T> {
        bytemuck::pod_collect_to_vec(self.data)
    }

    /// Numbers of any of the float types.
    pub fn floats(&self) -> Result<Vec<f64>, String> {
        match self.dtype {
            Dtype::F64 => Ok(self.stored()),
            Dtype::F32 => Ok(self.each(|x: f32| x.into())),
            Dtype::F16 => Ok(self.each(|x: f16| x.into())),
            Dtype::BF16 => Ok(self.each(|x: bf16| x.into())),
            _ => Err(self.other_type("F64, F32, F16 or BF16")),
        }
    }

    /// Numbers of a type that is exact in f32.
    pub fn narrow(&self) -> Result<Vec<f32>, String> {
        match self.dtype {
            Dtype::F32 => Ok(self.stored()),
            Dtype::F16 => Ok(self.each(|x: f16| x.into())),
            Dtype::BF16 => Ok(self.each(|x: bf16| x.into())),
            _ => Err(self.other_type("F32, F16 or BF16")),
        }
    }

    /// Numbers that count something.
    pub fn counts(&self) -> Result<Vec<u32>, String> {
        let all: Vec<i128> = match self.dtype {
            Dtype::I32 => self.each(|n: i32| n.into()),
            Dtype::U32 => self.each(|n: u32| n.into()),
            Dtype::I64 => self.each(|n: i64| n.into()),
            Dtype::U64 => self.each(|n: u64| n.into()),
            _ => return Err(self.other_type("I32, I64, U32 or U64")),
        };
        let count = |(at, n): (usize, i128)| {
            let refused = |_| format!("{}[{at}]: need 0 to {}, got {n}", self.name, u32::MAX);
            u32::try_from(n).map_err(refused)
        };
        all.into_iter().enumerate().map(count).collect()
    }

    pub fn bools(&self) -> Result<Vec<bool>, String> {
        match self.dtype {
            Dtype::BOOL => Ok(self.each(|byte: u8| byte != 0)),
            _ => Err(self.other_type("BOOL")),
        }
    }

    /// The shape, where only one will do.
    pub fn expect_shape(&self, need: &[usize]) -> Result<(), String> {
        let Tensor { name, shape: got, .. } = self;
        match *got == need {
            true => Ok(()),
            false => Err(format!("{name}: need shape {need:?}, got {got:?}")),
        }
    }

    pub fn other_type(&self, need: &str) -> String {
        format!("{}: need type {need}, got {:?}", self.name, self.dtype)
    }

    fn each<T: Pod, U>(&self, into: impl Fn(T) -> U) -> Vec<U> {
        self.stored().into_iter().map(into).collect()
    }
}
