//! What tests, examples and benches share: data with right answers, the case table, the lesson's own
//! numbers, devices that are pretended.

pub mod answers;
pub mod by_hand;
pub mod cases;
pub mod data;
pub mod expected;
pub mod golden;
pub mod lesson;
pub mod reports;
pub mod resident;
pub mod sentence;
pub mod tensor;

#[cfg(not(target_family = "wasm"))]
pub mod lanes;
#[cfg(not(target_family = "wasm"))]
pub mod matrices;
#[cfg(not(target_family = "wasm"))]
pub mod modules;
#[cfg(not(target_family = "wasm"))]
mod problems;
