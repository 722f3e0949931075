//! Where an example computes.

use std::fmt;

use clap::ValueEnum;
use wgpu_attention::{Error, Gpu, Inputs, Output, Problem, Scalar, cpu};

#[derive(Clone, Copy, ValueEnum)]
pub enum Choice {
    Gpu,
    Cpu,
}

/// A GPU; without one, the CPU reference.
pub struct Backend(pub Option<Gpu>);

impl Backend {
    /// Without a choice the GPU, and the CPU with a note on stderr where there is no adapter.
    pub fn open(choice: Option<Choice>) -> Result<Backend, Error> {
        match choice {
            Some(Choice::Cpu) => Ok(Backend(None)),
            Some(Choice::Gpu) => Gpu::new().map(|gpu| Backend(Some(gpu))),
            None => match Gpu::new() {
                Err(Error::NoAdapter(why)) => {
                    eprintln!("computed on the CPU, as there is no GPU adapter: {why}");
                    Ok(Backend(None))
                }
                gpu => gpu.map(|gpu| Backend(Some(gpu))),
            },
        }
    }

    pub fn attend<T: Scalar, C: Scalar>(
        &self,
        problem: &Problem,
        inputs: Inputs<'_, T, C>,
    ) -> Result<Output<T>, Error> {
        match &self.0 {
            Some(gpu) => gpu.attention(problem, inputs),
            None => cpu::attention(problem, inputs),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_ref().map(|gpu| gpu.device().adapter_info()) {
            Some(info) => write!(f, "{}, {:?}", info.name, info.backend),
            None => f.write_str("the CPU reference"),
        }
    }
}
