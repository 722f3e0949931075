//! Every kernel of attention on one call, with keys split and not.

use wgpu_attention::{Choice, Error, Gpu, Output, Problem, cpu};

use crate::answers::{FLASH, LSE, STAGED, TILE};
use crate::cases::Case;
use crate::checks::{Checked, DECODE, broadcast, split_gpu};
use crate::data::Data;
use crate::support::gpu;

fn kernels() -> [(&'static str, &'static Gpu, Choice); 9] {
    [
        ("flash", gpu(), FLASH),
        ("decode", gpu(), DECODE),
        ("broadcast, 1 row", gpu(), broadcast(1, 8)),
        ("broadcast, 2 rows", gpu(), broadcast(2, 8).with_keys_in_texture(true)),
        ("broadcast, 4 rows", gpu(), broadcast(4, 8)),
        ("staged", gpu(), STAGED),
        ("flash, split", split_gpu(), Choice::tile(TILE)),
        ("broadcast, split", split_gpu(), broadcast(1, 8)),
        ("staged, split", split_gpu(), STAGED),
    ]
}

/// Hands O and LSE to `check` once for each: the definition and its twin on the CPU, every kernel, and
/// those that split keys, if there are enough. Operands are stored as the case says.
pub fn every(case: Case, data: Data, mut check: impl FnMut(&str, &Output)) {
    let problem: Problem = LSE(case.problem.clone());
    let reference = cpu::attention(&problem, data.inputs()).expect(&case.name);
    check("cpu", &reference);
    for split in [None, Some(32)] {
        let twin = cpu::flash(&problem, data.inputs(), TILE, split).expect(&case.name);
        check("cpu, twin", &twin);
    }
    let checked = Checked { case, data, reference, tolerance: [0.0; 4] };
    let splits = problem.shape().kv_len > 64;
    // Several long rows a lane take long to compile.
    let wide = problem.shape().head_dim > 16;
    let kernels = kernels().into_iter().take(if splits { 9 } else { 6 });
    for (name, gpu, choice) in kernels.filter(|kernel| !(wide && kernel.0.ends_with("rows"))) {
        match pollster::block_on(checked.run(gpu, &problem, choice)) {
            Ok(output) => check(name, &output),
            // Odd rows in 16 bits cannot be written by themselves.
            Err(Error::Stride { .. }) => {}
            Err(Error::Limit { what, .. }) => println!("SKIPPED: {name}: lacks {what}"),
            Err(error) => panic!("{}, {name}: {error}", checked.case.name),
        }
    }
}
