//! A plan in words and numbers: for people, logs and tests.

use std::fmt;

use crate::attention::Pipeline;
use crate::plan::Inner;
use crate::{Method, Plan, Tile};

/// What a plan will do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Description {
    /// The family of kernels.
    pub method: Method,
    /// Query and key tokens that a workgroup handles at a time.
    pub tile: Tile,
    /// Keys of one split, if the keys are split over workgroups and merged.
    pub split_keys: Option<u32>,
    /// The dispatches, in order. Empty if there is nothing to compute.
    pub dispatches: Vec<Dispatch>,
}

/// One dispatch of a plan.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Dispatch {
    /// File, entry point, CPU twin and label.
    pub kernel: &'static str,
    /// The whole module.
    pub wgsl: String,
    /// Numbers of the bindings in group 0.
    pub bindings: Vec<u32>,
    /// Invocations of a workgroup.
    pub invocations: u32,
    /// Workgroup memory, in bytes.
    pub workgroup_bytes: u32,
    /// Workgroups along x, y and z.
    pub grid: [u32; 3],
}

impl Dispatch {
    pub(crate) fn new(pipeline: &Pipeline, grid: [u32; 3]) -> Dispatch {
        let module = &pipeline.module;
        Dispatch {
            kernel: module.name,
            wgsl: module.wgsl.clone(),
            bindings: module.slots.iter().map(|&slot| slot as u32).collect(),
            invocations: module.threads,
            workgroup_bytes: module.workgroup_bytes,
            grid,
        }
    }
}

impl Plan {
    /// What this plan will do.
    pub fn describe(&self) -> Description {
        let Inner { method, variant, split_keys, steps, .. } = &*self.inner;
        Description {
            method: *method,
            tile: variant.blocks.tile(),
            split_keys: (variant.splits > 1).then_some(*split_keys),
            dispatches: steps.iter().map(|s| Dispatch::new(&s.pipeline, s.grid)).collect(),
        }
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tile { queries, keys } = self.tile;
        write!(f, "{:?}, tiles of {queries} queries x {keys} keys", self.method)?;
        if let Some(split) = self.split_keys {
            write!(f, ", splits of {split} keys")?;
        }
        self.dispatches.iter().try_for_each(|dispatch| write!(f, "\n  {dispatch}"))
    }
}

impl fmt::Display for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dispatch { kernel, grid: [x, y, z], invocations, workgroup_bytes, .. } = self;
        write!(f, "{kernel}: {x} x {y} x {z} workgroups of {invocations}, ")?;
        write!(f, "{workgroup_bytes} B of workgroup memory each")
    }
}
