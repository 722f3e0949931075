//! What a plan needs of a device, against its limits.

use crate::kernel::{Module, Slot, check_workgroup};
use crate::uniform::ProblemUniform;
use crate::{Error, Operand, Problem};

/// What a binding's offset is rounded down to, at most.
const ALIGNMENT: u64 = 256;

/// Workgroups of one dispatch: far from where u32 arithmetic would wrap.
const MOST_GROUPS: u64 = 1 << 31;

/// Everything bound must fit one binding each, and every number its limit.
pub(super) fn check_bindings(problem: &Problem, limits: &wgpu::Limits) -> Result<(), Error> {
    let homes = || problem.operands().into_iter().filter(|&o| problem.elements(o) > 0);
    let first = |operand| {
        let unit = u128::from(problem.element_of(operand).bytes());
        let byte = u64::try_from(problem.span(operand).offset * unit).unwrap_or(u64::MAX);
        byte / ALIGNMENT * ALIGNMENT
    };
    let bytes = |operand| problem.bytes(operand) - first(operand);
    if problem.is_arena() {
        let homes = || homes().filter(|&o| o != Operand::Tables);
        let end = homes().map(|o| problem.bytes(o)).max().unwrap_or(0);
        check_binding("arena", end - homes().map(first).min().unwrap_or(0), limits)?;
        check_binding("tables", problem.bytes(Operand::Tables), limits)?;
    } else {
        for operand in homes() {
            check_binding(operand.name(), bytes(operand), limits)?;
        }
    }
    check_groups_and_uniforms(
        if problem.cache().is_some() { Slot::VOut } else { Slot::Tables },
        limits,
    )
}

/// What every kernel needs besides its storage; `last` has the largest number of what it binds.
pub(crate) fn check_groups_and_uniforms(last: Slot, limits: &wgpu::Limits) -> Result<(), Error> {
    let uniform = size_of::<ProblemUniform>() as u64;
    let needs = [
        ("max_uniform_buffer_binding_size", uniform, limits.max_uniform_buffer_binding_size),
        (
            "max_uniform_buffers_per_shader_stage",
            if last > Slot::Cache { 3 } else { 2 },
            limits.max_uniform_buffers_per_shader_stage.into(),
        ),
        ("max_bindings_per_bind_group", last as u64 + 1, limits.max_bindings_per_bind_group.into()),
        ("max_bind_groups", 1, limits.max_bind_groups.into()),
    ];
    for (what, need, got) in needs {
        if need > got {
            return Err(Error::Limit { what, need, got });
        }
    }
    Ok(())
}

/// The workgroup of a module, and what it binds.
pub(crate) fn check_module(module: &Module, limits: &wgpu::Limits) -> Result<(), Error> {
    check_workgroup(module.threads, module.workgroup_bytes, limits)?;
    let count = |is: fn(Slot) -> bool| module.slots.iter().filter(|&&slot| is(slot)).count() as u64;
    let needs = [
        (
            "max_storage_buffers_per_shader_stage",
            count(Slot::is_storage),
            limits.max_storage_buffers_per_shader_stage,
        ),
        (
            "max_storage_textures_per_shader_stage",
            count(Slot::is_texture),
            limits.max_storage_textures_per_shader_stage,
        ),
    ];
    match needs.into_iter().find(|need| need.1 > need.2.into()) {
        Some((what, need, got)) => Err(Error::Limit { what, need, got: got.into() }),
        None => Ok(()),
    }
}

pub(super) fn largest_binding(limits: &wgpu::Limits) -> u64 {
    limits.max_storage_buffer_binding_size.min(limits.max_buffer_size)
}

pub(crate) fn check_binding(
    what: &'static str,
    need: u64,
    limits: &wgpu::Limits,
) -> Result<(), Error> {
    let got = largest_binding(limits);
    if need > got { Err(Error::Limit { what, need, got }) } else { Ok(()) }
}

/// A grid of at least `groups` workgroups, no dimension above `most`, nearly no waste.
pub(crate) fn fold(last: u64, groups: u64, most: u32) -> Result<[u32; 3], Error> {
    let side = u64::from(most);
    let allowed = side.saturating_mul(side).saturating_mul(side).min(MOST_GROUPS);
    if last > allowed {
        return Err(Error::Limit { what: "workgroups", need: last, got: allowed });
    }
    let planes = groups.div_ceil(side * side).max(1);
    let rows = groups.div_ceil(planes * side).max(1);
    let columns = groups.div_ceil(planes * rows);
    Ok([columns as u32, rows as u32, planes as u32])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_grids_cover_and_fit() {
        for most in [1u32, 7, 100, 65_535] {
            for groups in
                [1u64, 2, 6, 7, 8, 48, 49, 50, 343, 65_535, 65_536, 70_000, 5_000_000, 1 << 31]
            {
                let side = u64::from(most);
                match fold(groups, groups, most) {
                    Ok(grid) => {
                        let total: u64 = grid.iter().map(|&n| u64::from(n)).product();
                        assert!(
                            total >= groups && grid.iter().all(|&n| n <= most),
                            "{groups} {grid:?}"
                        );
                        assert!(total - groups <= groups / 8 + side, "waste: {groups} {grid:?}");
                        assert!(total < 1 << 32, "indices wrap: {groups} {grid:?}");
                    }
                    Err(_) => assert!(side.pow(3) < groups, "{groups} {most}"),
                }
            }
        }
    }
}
