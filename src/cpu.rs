//! Attention on the CPU: the specification that every kernel is tested against.
//!
//! [`attention`] is the definition in f64, one row after the other. [`flash`] is the f32 twin of
//! the fused kernel: the same tiles in the same order, so that it shows which part of a kernel's
//! error comes from the method and which from the device.

mod cache;
mod flash;
mod merge;
mod multi_head;
mod naive;
mod project;
mod rows;

pub use cache::{AppendInputs, KvCache};
pub use flash::flash;
pub use merge::merge;
pub use multi_head::multi_head;
pub use naive::{Row, attention, row};
pub use project::project;
