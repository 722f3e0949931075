//! placeholder
mod attention;
mod bind;
pub mod cpu;
mod describe;
mod error;
#[cfg(feature = "host")]
mod host;
mod kernel;
mod plan;
mod problem;
mod scope;
mod tensors;
mod uniform;
pub use attention::{Attention, Choice, LoopLimit, Method, Options};
pub use bind::{Bound, Buffers};
pub use describe::{Description, Dispatch};
pub use error::Error;
#[cfg(feature = "host")]
pub use host::Gpu;
pub use kernel::Tile;
pub use plan::Plan;
pub use problem::{
    Align, Band, BiasLayout, Element, Group, Layout, Operand, Outputs, Problem, Shape,
};
pub use tensors::{Inputs, Output, Scalar};
