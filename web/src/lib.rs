//! The page's numbers: attention by this project's kernels on the browser's WebGPU, or by its CPU
//! reference where there is none. The page only draws.

mod attend;
mod cost;
mod engine;

pub use attend::{Attended, Call};
pub use cost::Run;
pub use engine::Engine;

use wasm_bindgen::prelude::*;

/// A panic is a bug; it should at least be read in the console.
#[wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
}

/// An error of the library as one of JavaScript, by its text.
fn told(error: wgpu_attention::Error) -> JsError {
    JsError::new(&error.to_string())
}
