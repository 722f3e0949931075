//! Every kernel on a real adapter, against the CPU reference.

mod answers;
mod broadcast;
mod cache;
mod cases;
mod checks;
mod data;
mod embedding;
mod errors;
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
