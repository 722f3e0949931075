//! What is asked for.

use std::path::PathBuf;

use clap::Parser;

/// Measures this crate on a card: what the card does at most, then attention of many sizes, each
/// answer checked before it is timed, beside PyTorch's on the same card where Python has it.
///
/// `scripts/gpu-check.sh` runs the tests too. The environment variables WGPU_BACKEND and
/// WGPU_ADAPTER_NAME choose the adapter, PYTHON the interpreter.
///
/// Exit code: 0 if every answer was right, 1 if one was wrong or missing, 2 if nothing could be
/// measured or written.
#[derive(Parser)]
pub struct Args {
    /// The folder for gpu-check.md and gpu-check.json, rewritten after each line
    #[arg(long, value_name = "FOLDER", default_value = "gpu-check")]
    pub out: PathBuf,
    /// Seconds for all of it; what there was no time for is listed
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub seconds: u64,
    /// A few small sizes; software adapters too
    #[arg(long)]
    pub small: bool,
    /// Only print what is known of the adapter
    #[arg(long)]
    pub facts: bool,
    /// A line for the report, as NAME=VALUE; several allowed
    #[arg(long = "note", value_name = "NOTE")]
    pub notes: Vec<String>,
    /// The program that asks PyTorch
    #[arg(long, value_name = "FILE", default_value = "scripts/gpu_check_torch.py")]
    pub torch: PathBuf,
    /// PyTorch on the CPU, to try this program where there is no card
    #[arg(long)]
    pub torch_cpu: bool,
}
