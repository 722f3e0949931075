//! What a workgroup may take.

use crate::Error;

pub(crate) fn check_workgroup(
    threads: u32,
    bytes: u32,
    limits: &wgpu::Limits,
) -> Result<(), Error> {
    let checks = [
        (
            "max_compute_invocations_per_workgroup",
            threads,
            limits.max_compute_invocations_per_workgroup,
        ),
        ("max_compute_workgroup_size_x", threads, limits.max_compute_workgroup_size_x),
        ("max_compute_workgroup_storage_size", bytes, limits.max_compute_workgroup_storage_size),
    ];
    for (what, need, got) in checks {
        if need > got {
            return Err(Error::Limit { what, need: need.into(), got: got.into() });
        }
    }
    Ok(())
}

/// What a variable in workgroup memory counts for in `maxComputeWorkgroupStorageSize` (WebGPU, validation of
/// compute pipelines).
pub(super) const fn rounded(bytes: u32) -> u32 {
    bytes.next_multiple_of(16)
}
