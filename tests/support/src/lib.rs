//! What tests, examples and benches share: data with right answers, the case table, the lesson's own
//! numbers, devices that are pretended.

pub mod answers;
pub mod cases;
pub mod data;
pub mod expected;
pub mod lesson;
pub mod sentence;
pub mod tensor;

// What needs files, or devices of the kind that browsers do not have.
#[cfg(not(target_family = "wasm"))]
pub mod by_hand;
#[cfg(not(target_family = "wasm"))]
pub mod golden;
#[cfg(not(target_family = "wasm"))]
pub mod lanes;
#[cfg(not(target_family = "wasm"))]
pub mod matrices;
#[cfg(not(target_family = "wasm"))]
pub mod modules;
#[cfg(not(target_family = "wasm"))]
mod problems;
#[cfg(not(target_family = "wasm"))]
pub mod reports;
#[cfg(not(target_family = "wasm"))]
pub mod resident;
