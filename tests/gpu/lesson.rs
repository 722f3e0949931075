//! The lesson's demo by the GPU's numbers.

#[path = "../lesson/checks.rs"]
mod checks;
#[path = "../data/demo.rs"]
mod demo;
#[path = "../../examples/six_tokens/entropy.rs"]
mod entropy;
#[path = "../../examples/six_tokens/figures.rs"]
mod figures;
#[path = "../../examples/six_tokens/page.rs"]
mod page;
#[path = "../../examples/six_tokens/steps.rs"]
mod steps;
#[path = "../../examples/six_tokens/tokens.rs"]
mod tokens;

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
