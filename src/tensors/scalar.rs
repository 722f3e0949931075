//! Numbers as they are stored in host memory.

use half::{bf16, f16};

use crate::Element;

/// A number as it is stored in host memory: `f32`, [`half::f16`] or [`half::bf16`].
///
/// Sealed: a storage type needs kernels.
pub trait Scalar: bytemuck::Pod + Send + Sync + private::Sealed {
    /// The same type by name.
    const ELEMENT: Element;
    /// The exact value.
    fn to_f64(self) -> f64;
    /// The nearest value of this type.
    fn from_f64(x: f64) -> Self;
}

mod private {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

impl Scalar for f32 {
    const ELEMENT: Element = Element::F32;
    fn to_f64(self) -> f64 {
        self.into()
    }
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
}

impl Scalar for f16 {
    const ELEMENT: Element = Element::F16;
    fn to_f64(self) -> f64 {
        self.into()
    }
    fn from_f64(x: f64) -> f16 {
        f16::from_f64(x)
    }
}

impl Scalar for bf16 {
    const ELEMENT: Element = Element::Bf16;
    fn to_f64(self) -> f64 {
        self.into()
    }
    fn from_f64(x: f64) -> bf16 {
        bf16::from_f64(x)
    }
}
