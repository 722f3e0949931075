//! Inside another program: its device, its buffers, its passes and submits.

mod empty;
mod lengths;
mod memory;
pub mod pass;
mod reuse;
mod rounds;
mod tables;
pub mod typed;
