//! What takes too long for every change: `cargo test -- --ignored exhaustive`. The whole case table where
//! the other tests run a part of it, on every kernel.

use wgpu_attention::Method;

use crate::checks::{EVERYTHING, FLASH, LSE, NOTHING, Run, STAGED, some_of_all, table};
use crate::kernels::{DECODE, Walk, broadcast};
use crate::support::{default_limits_gpu, gpu};
use crate::{
    broadcast as lanes, cache, embedding, golden, merge, numerics, parity, precision, reports,
};

#[test]
#[ignore = "exhaustive"]
fn table_on_fused_kernels() {
    for (name, choice) in [("flash", FLASH), ("decode", DECODE)] {
        for wants in [LSE, NOTHING] {
            let run = Run { name, gpu: gpu(), choice, wants };
            assert_eq!(run.check(table()), [table().len(), 0]);
        }
    }
}

#[test]
#[ignore = "exhaustive"]
fn table_on_broadcast() {
    let one = broadcast(1, 8).with_keys_in_texture(true);
    assert!(lanes::run("broadcast", one, table()) >= table().len());
    let some = || table().iter().filter(|checked| some_of_all(&checked.case.name));
    for rows in [1, 2, 4] {
        for (place, keys, yes) in [("a texture", 16, true), ("buffers", 4, false)] {
            let name = &format!("broadcast, {rows} rows a lane, {place}");
            let choice = broadcast(rows, keys).with_keys_in_texture(yes);
            assert!(lanes::run(name, choice, some()) > 5);
        }
    }
}

#[test]
#[ignore = "exhaustive"]
fn table_staged() {
    for (name, wants) in [("staged", NOTHING), ("staged, all outputs", EVERYTHING)] {
        let run = Run { name, gpu: gpu(), choice: STAGED, wants };
        assert_eq!(run.check(table()), [table().len(), 0]);
    }
}

#[test]
#[ignore = "exhaustive"]
fn table_with_split_keys() {
    parity::splits::split_keys_of(1);
}

#[test]
#[ignore = "exhaustive"]
fn table_with_default_limits() {
    parity::default_limits_on(|| table().iter());
}

#[test]
#[ignore = "exhaustive"]
fn golden_cases_on_every_kernel() {
    golden::check_cases("the adapter's limits", gpu(), Method::ALL, 1);
    golden::check_cases("default limits", default_limits_gpu(), Method::ALL, 1);
}

#[test]
#[ignore = "exhaustive"]
fn reported_faults_in_long_rows() {
    reports::reported_faults(Walk::whole("reported faults, all"));
    reports::files::reported_files(true);
}

/// Where the other tests take every second of what there is.
#[test]
#[ignore = "exhaustive"]
fn types_and_places() {
    cache::types_and_places(1);
    cache::device_lengths::everything_else(1);
    cache::means::large_values(1, 24);
    embedding::typed::several_types(1);
    merge::merges([1; 3], 500);
    numerics::means::means(true);
    precision::every_number(true);
    precision::results_round(true);
    precision::rules(2, 16);
}

#[test]
#[ignore = "exhaustive"]
fn precision_in_long_rows() {
    precision::rules(2, 64);
    precision::rules(2, 128);
}
