//! The planner on devices that nobody here has: every plan stays within every limit, or the error
//! names one that is truly exceeded. wgpu's noop back end only pretends, so no GPU is needed.

mod broadcast;
mod device;
mod dispatches;
mod excluded;
mod extras;
mod fuzz;
mod grid;
mod layers;
mod limits;
mod problems;
mod reuse;
