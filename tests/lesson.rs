//! The lesson's figures and statements, on the CPU reference. Needs no GPU.

#[path = "lesson/checks.rs"]
mod checks;
#[path = "../examples/lesson_facts/context.rs"]
mod context;
#[path = "../examples/lesson_facts/cost.rs"]
mod cost;
#[path = "data/demo.rs"]
mod demo;
#[path = "../examples/six_tokens/entropy.rs"]
mod entropy;
#[path = "lesson/facts.rs"]
mod facts;
#[path = "../examples/six_tokens/figures.rs"]
mod figures;
#[path = "../examples/lesson_facts/order.rs"]
mod order;
#[path = "../examples/six_tokens/page.rs"]
mod page;
#[path = "../examples/lesson_facts/saturation.rs"]
mod saturation;
#[path = "../examples/lesson_facts/spread.rs"]
mod spread;
#[path = "../examples/six_tokens/steps.rs"]
mod steps;
#[path = "../examples/six_tokens/tokens.rs"]
mod tokens;

use wgpu_attention::{Error, Inputs, Output, Problem, cpu};

fn attend(problem: &Problem, inputs: Inputs<'_>) -> Result<Output, Error> {
    cpu::attention(problem, inputs)
}

#[test]
fn printed_figures() {
    checks::printed(&attend).expect("a page");
}

#[test]
fn exact_values() {
    checks::exact(&attend).expect("numbers");
}
