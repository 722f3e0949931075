//! The kernel of subgroups on cases of the table, and what the planner chooses on a software adapter.

use wgpu_attention::{Choice, Method, Problem, Shape};

use crate::checks::{Checked, LSE, Run, part, table};
use crate::kernels;
use crate::support::gpu;

pub fn run<'c>(name: &str, choice: Choice, cases: impl IntoIterator<Item = &'c Checked>) -> usize {
    let [ran, skipped] = Run { name, gpu: gpu(), choice, wants: LSE }.check(cases);
    // What the adapter lacks, it lacks for all.
    assert!(ran == 0 || skipped == 0, "{name}: {ran} ran, {skipped} skipped");
    if skipped == 0 { ran } else { usize::MAX }
}

/// One row a lane, from a texture; more rows, which take long to compile, and other tiles on some.
#[test]
fn cases() {
    let one = kernels::broadcast(1, 8).with_keys_in_texture(true);
    assert!(run("broadcast", one, part(0, one).step_by(2)) > 25);
    let walks = ["packed, everything", "129 x 33, left"];
    let some = |c: &&Checked| walks.iter().any(|walk| c.case.name.starts_with(walk));
    for (rows, place, keys, yes) in
        [(1, "buffers", 4, false), (2, "buffers", 4, false), (4, "a texture", 16, true)]
    {
        let name = &format!("broadcast, {rows} rows a lane, {place}");
        let choice = kernels::broadcast(rows, keys).with_keys_in_texture(yes);
        assert!(run(name, choice, table().iter().filter(some)) >= 3);
    }
}

/// The fused kernel by rows and dims: docs/performance.md.
#[test]
fn chosen_on_llvmpipe() {
    let info = gpu().device().adapter_info();
    let software = info.name.starts_with("llvmpipe");
    println!("{}: {}", info.name, if software { "by rows" } else { "always flash" });
    let chosen = |rows: u32, dim: u32| {
        let shape = Shape::self_attention(1, 2, rows, dim).kv_len(50);
        let plan = gpu().planner().plan(&Problem::new(shape)).expect("a plan");
        let first = plan.describe().dispatches[0].kernel;
        (plan.method(), first)
    };
    for (rows, dim, method, first) in [
        (1, 64, Method::Decode, "decode"),
        (2, 64, Method::Broadcast, "broadcast"),
        (8, 64, Method::Broadcast, "broadcast"),
        // several tiles share the keys
        (9, 64, Method::Broadcast, "pack"),
        (200, 128, Method::Broadcast, "pack"),
        // too long for registers
        (200, 132, Method::Flash, "flash"),
        (16, 132, Method::Decode, "decode"),
    ] {
        let want = if software { (method, first) } else { (Method::Flash, "flash") };
        assert_eq!(chosen(rows, dim), want, "{rows} rows of {dim}");
    }
}
