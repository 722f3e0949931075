//! Numbers out of a safetensors file.

use safetensors::{Dtype, SafeTensors};

/// An element type that the data files use for numbers.
pub trait Number: bytemuck::Pod {
    const DTYPE: Dtype;
}

impl Number for f32 {
    const DTYPE: Dtype = Dtype::F32;
}

impl Number for f64 {
    const DTYPE: Dtype = Dtype::F64;
}

/// All elements of a tensor that must be there.
pub fn read<T: Number>(file: &SafeTensors<'_>, name: &str) -> Vec<T> {
    let tensor = file.tensor(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(tensor.dtype(), T::DTYPE, "{name}");
    bytemuck::pod_collect_to_vec(tensor.data())
}
