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
        f16::from_f32(to_odd(x))
    }
}

impl Scalar for bf16 {
    const ELEMENT: Element = Element::Bf16;
    fn to_f64(self) -> f64 {
        self.into()
    }
    fn from_f64(x: f64) -> bf16 {
        bf16::from_f32(to_odd(x))
    }
}

/// One of the two f32 neighbours of a number that is none itself: the one whose last bit is set.
/// Rounding that once more gives the nearest 16-bit number; `half` drops bits of an f64 first.
fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    let bits = near.to_bits();
    if f64::from(near) == x || x.is_nan() || bits % 2 == 1 {
        return near;
    }
    let is_beyond = f64::from(near).abs() > x.abs();
    f32::from_bits(if is_beyond { bits - 1 } else { bits + 1 })
}
