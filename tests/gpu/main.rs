//! Every kernel on a real adapter, against the CPU reference.

mod broadcast;
mod cache;
mod checks;
mod embedding;
mod errors;
mod exhaustive;
mod golden;
mod kernels;
mod layer;
mod lesson;
mod matrix;
mod merge;
mod numerics;
mod pairs;
mod parity;
mod precision;
mod program;
mod properties;
mod reports;
mod support;
mod tuner;
