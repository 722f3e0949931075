//! What modules take of a device, read back from their text.

use std::collections::HashMap;

use wgpu::Features;
use wgpu::naga::{AddressSpace, front::wgsl, proc::Layouter};
use wgpu_attention::Dispatch;

use crate::device::Traits;

/// The distinct ones, by their text.
#[derive(Default)]
pub struct Modules(HashMap<String, Module>);

struct Module {
    features: Features,
    /// Rows of its matrices.
    matrices: Option<u32>,
    /// Lanes that it counts on, if it does.
    lanes: Option<u32>,
    invocations: u32,
    workgroup_bytes: u32,
}

impl Modules {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Nothing but what the device has, and the workgroup that the plan says.
    pub fn check(&mut self, dispatch: &Dispatch, traits: Traits) -> Result<(), String> {
        if !self.0.contains_key(&dispatch.wgsl) {
            self.0.insert(dispatch.wgsl.clone(), read(&dispatch.wgsl)?);
        }
        let module = &self.0[&dispatch.wgsl];
        let matrices = module.matrices.is_none_or(|size| traits.matrices.contains(&size));
        let lanes = module.lanes.is_none_or(|lanes| traits.lanes == [lanes, lanes]);
        // With fewer lanes there are more subgroups than matrices, with more there would be fewer.
        let whole = module.matrices.is_none() || module.invocations.is_multiple_of(traits.lanes[1]);
        let workgroup = (module.invocations, module.workgroup_bytes);
        let checks = [
            (traits.features.contains(module.features), "features"),
            (matrices, "sizes of matrices"),
            (lanes && whole, "lanes"),
            (workgroup == (dispatch.invocations, dispatch.workgroup_bytes), "workgroup"),
        ];
        match checks.into_iter().find(|check| !check.0) {
            Some((_, what)) => Err(format!("{what} of {}", dispatch.kernel)),
            None => Ok(()),
        }
    }
}

fn read(text: &str) -> Result<Module, String> {
    let code: Vec<_> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let has = |word: &str| code.iter().any(|line| line.contains(word));
    let needs = [
        ("enable f16;", Features::SHADER_F16),
        ("subgroup", Features::SUBGROUP),
        ("coop_mat", Features::EXPERIMENTAL_COOPERATIVE_MATRIX),
    ];
    let matrices = [8, 16].into_iter().find(|size| has(&format!("coop_mat{size}x{size}<")));
    let counted = code.iter().find_map(|line| line.strip_prefix("const SUBGROUP_SIZE = "));
    let counted = counted.and_then(|line| line.strip_suffix("u;")?.parse().ok());

    let module = wgsl::parse_str(text).map_err(|error| error.emit_to_string(text))?;
    let mut layouter = Layouter::default();
    layouter.update(module.to_ctx()).map_err(|error| error.to_string())?;
    let globals = module.global_variables.iter().map(|(_, global)| global);
    let shared = globals.filter(|global| global.space == AddressSpace::WorkGroup);
    Ok(Module {
        features: needs
            .into_iter()
            .filter(|need| has(need.0))
            .fold(Features::empty(), |a, b| a | b.1),
        matrices,
        lanes: counted.filter(|&lanes| lanes > 0 && has("subgroup")),
        invocations: module.entry_points[0].workgroup_size.iter().product(),
        workgroup_bytes: shared.map(|global| layouter[global.ty].size.next_multiple_of(16)).sum(),
    })
}
