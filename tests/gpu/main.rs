//! Every kernel on a real adapter, against the CPU reference.

mod layer;
mod lesson;
mod support;
