//! The lesson's demo by the GPU's numbers.

#[path = "../lesson/checks.rs"]
mod checks;

use wgpu_attention::{Inputs, Problem};

use crate::support;

#[test]
fn printed_figures() {
    for gpu in [support::gpu(), support::default_limits_gpu()] {
        let attend = |problem: &Problem, inputs: Inputs<'_>| gpu.attention(problem, inputs);
        checks::printed(&attend).expect("a page");
    }
}

#[test]
fn exact_values() {
    for gpu in [support::gpu(), support::default_limits_gpu()] {
        let attend = |problem: &Problem, inputs: Inputs<'_>| gpu.attention(problem, inputs);
        checks::exact(&attend).expect("numbers");
    }
}
