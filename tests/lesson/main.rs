//! The lesson's figures and statements, on the CPU reference. Needs no GPU.

mod checks;
#[path = "../../examples/lesson_facts/context.rs"]
mod context;
#[path = "../../examples/lesson_facts/cost.rs"]
mod cost;
mod facts;
#[path = "../../examples/lesson_facts/order.rs"]
mod order;
#[path = "../../examples/lesson_facts/saturation.rs"]
mod saturation;
#[path = "../../examples/lesson_facts/spread.rs"]
mod spread;

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
