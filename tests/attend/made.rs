//! Files for the tool, made here, and its results read again.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use half::{bf16, f16};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// A tensor that owns its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub data: Vec<u8>,
}

/// A file in the making.
#[derive(Clone, Default)]
pub struct Made {
    pub tensors: BTreeMap<String, Tensor>,
    metadata: HashMap<String, String>,
}

impl Tensor {
    pub fn new<T: bytemuck::Pod>(dtype: Dtype, shape: &[usize], numbers: &[T]) -> Tensor {
        let data = bytemuck::cast_slice(numbers).to_vec();
        assert_eq!(data.len() * 8, shape.iter().product::<usize>() * dtype.bitsize());
        Tensor { dtype, shape: shape.into(), data }
    }

    pub fn f32(shape: &[usize], numbers: &[f32]) -> Tensor {
        Tensor::new(Dtype::F32, shape, numbers)
    }

    /// Numbers about 0, rounded to the type, always the same for one seed.
    pub fn random(dtype: Dtype, shape: &[usize], seed: u64) -> Tensor {
        let mut random = StdRng::seed_from_u64(seed);
        let count = shape.iter().product();
        let numbers: Vec<f32> = (0..count).map(|_| random.random_range(-2.0..2.0)).collect();
        Tensor::f32(shape, &numbers).to(dtype)
    }

    /// The same numbers, rounded to another float type.
    pub fn to(&self, dtype: Dtype) -> Tensor {
        let numbers = self.numbers().into_iter();
        match dtype {
            Dtype::F64 => Tensor::new(dtype, &self.shape, &numbers.collect::<Vec<f64>>()),
            Dtype::F32 => {
                let narrow: Vec<f32> = numbers.map(|x| x as f32).collect();
                Tensor::new(dtype, &self.shape, &narrow)
            }
            Dtype::F16 => {
                Tensor::new(dtype, &self.shape, &numbers.map(f16::from_f64).collect::<Vec<_>>())
            }
            Dtype::BF16 => {
                Tensor::new(dtype, &self.shape, &numbers.map(bf16::from_f64).collect::<Vec<_>>())
            }
            _ => panic!("{dtype:?}"),
        }
    }

    pub fn stored<T: bytemuck::Pod>(&self) -> Vec<T> {
        bytemuck::pod_collect_to_vec(&self.data)
    }

    pub fn numbers(&self) -> Vec<f64> {
        match self.dtype {
            Dtype::F64 => self.stored(),
            Dtype::F32 => self.stored::<f32>().into_iter().map(f64::from).collect(),
            Dtype::F16 => self.stored::<f16>().into_iter().map(f64::from).collect(),
            Dtype::BF16 => self.stored::<bf16>().into_iter().map(f64::from).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// The second axis and the third in each other's place: head-major from token-major and back.
    pub fn swapped(&self) -> Tensor {
        let [a, b, c, d] = *self.shape else { panic!("{:?}", self.shape) };
        let row = d * self.dtype.bitsize() / 8;
        let mut data = Vec::new();
        for (i, k, j) in (0..a * c * b).map(|at| (at / b / c, at / b % c, at % b)) {
            let start = ((i * b + j) * c + k) * row;
            data.extend_from_slice(&self.data[start..start + row]);
        }
        Tensor { dtype: self.dtype, shape: vec![a, c, b, d], data }
    }

    /// A part of the third axis.
    pub fn tokens(&self, range: std::ops::Range<usize>) -> Tensor {
        let inner: usize = self.shape[3..].iter().product::<usize>() * self.dtype.bitsize() / 8;
        let rows = self.data.chunks((self.shape[2] * inner).max(1));
        let data = rows.flat_map(|head| &head[range.start * inner..range.end * inner]);
        let data = data.copied().collect();
        let mut shape = self.shape.clone();
        shape[2] = range.len();
        Tensor { dtype: self.dtype, shape, data }
    }

    /// One entry of the first axis.
    pub fn batch(&self, at: usize) -> Tensor {
        let inner = self.data.len() / self.shape[0];
        let mut shape = self.shape.clone();
        shape[0] = 1;
        let data = self.data[at * inner..][..inner].to_vec();
        Tensor { dtype: self.dtype, shape, data }
    }
}

impl Made {
    pub fn new() -> Made {
        Made::default()
    }

    /// q `[2, 4, 9, 8]`, k and v of 2 heads and 13 tokens, v of 6 numbers a token.
    pub fn usual() -> Made {
        Made::of_types(Dtype::F32, Dtype::F32)
    }

    pub fn of_types(queries: Dtype, keys: Dtype) -> Made {
        Made::new()
            .with("q", Tensor::random(queries, &[2, 4, 9, 8], 1))
            .with("k", Tensor::random(keys, &[2, 2, 13, 8], 2))
            .with("v", Tensor::random(keys, &[2, 2, 13, 6], 3))
    }

    pub fn with(mut self, name: &str, tensor: Tensor) -> Made {
        self.tensors.insert(name.into(), tensor);
        self
    }

    pub fn without(mut self, name: &str) -> Made {
        self.tensors.remove(name);
        self
    }

    pub fn meta(mut self, name: &str, text: &str) -> Made {
        self.metadata.insert(name.into(), text.into());
        self
    }

    pub fn params(self, json: &str) -> Made {
        self.meta("params", json)
    }

    pub fn expecting(mut self, results: &Made) -> Made {
        self.tensors.extend(results.tensors.clone());
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let views = self.tensors.iter().map(|(name, tensor)| {
            let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.data);
            (name, view.expect("a tensor"))
        });
        let metadata = (!self.metadata.is_empty()).then(|| self.metadata.clone());
        safetensors::serialize(views, metadata).expect("a file")
    }

    /// The tensors of a file.
    pub fn read(path: &Path) -> Made {
        let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = SafeTensors::deserialize(&bytes).expect("a right file");
        let tensor = |view: TensorView<'_>| Tensor {
            dtype: view.dtype(),
            shape: view.shape().into(),
            data: view.data().into(),
        };
        let tensors = file.iter().map(|(name, view)| (name.into(), tensor(view))).collect();
        Made { tensors, metadata: HashMap::new() }
    }
}

impl std::ops::Index<&str> for Made {
    type Output = Tensor;

    fn index(&self, name: &str) -> &Tensor {
        self.tensors.get(name).unwrap_or_else(|| panic!("no {name}"))
    }
}
