//! Pretended devices with features, subgroups and matrices, and problems of every kind: each pair
//! comes to a plan within all that the device has, or to an error that names what is missing.

mod caches;
mod choice;
mod devices;
mod modules;
mod problems;

use std::collections::BTreeMap;

use wgpu::Features;
use wgpu_attention::{Choice, Error, Method, Operand, Plan};

use crate::device::{Pretend, Traits};
use crate::limits::{lift, within};
use devices::{Device, MATRIX, named, sized};
use modules::Modules;
use problems::{Named, problems};

/// Each problem as planned by default, and by every other method: by the rest on the next device.
#[test]
fn devices_that_resemble_real_ones() {
    real_devices(3, 450);
}

#[test]
#[ignore = "exhaustive"]
fn exhaustive_real_devices() {
    real_devices(1, 1500);
}

/// Each device takes one in so many of the problems.
fn real_devices(step: usize, least: u32) {
    let problems = problems();
    let mut tally = Tally::default();
    for (number, device) in named().iter().enumerate() {
        let pretend = device.pretend();
        for (at, problem) in problems.iter().enumerate().skip(number % step).step_by(step) {
            let methods = Method::ALL.iter().skip((number + at / step) % 2).step_by(2);
            tally.pair(device, &pretend, problem, methods);
        }
    }
    tally.finish(least);
}

#[test]
fn every_size_with_every_ability() {
    sizes_and_abilities(68, 450);
}

#[test]
#[ignore = "exhaustive"]
fn exhaustive_sizes_and_abilities() {
    sizes_and_abilities(17, 2000);
}

/// Each device takes one in so many of the problems, by default and by one method.
fn sizes_and_abilities(step: usize, least: u32) {
    let problems = problems();
    let mut tally = Tally::default();
    for (number, device) in sized().iter().enumerate() {
        let pretend = device.pretend();
        for (at, problem) in problems.iter().enumerate().skip(number % step).step_by(step) {
            let method = &Method::ALL[(number + at / step) % Method::ALL.len()];
            tally.pair(device, &pretend, problem, [method]);
        }
    }
    tally.finish(least);
}

/// What all pairs came to.
#[derive(Default)]
struct Tally {
    pairs: u32,
    planned: BTreeMap<String, u32>,
    refused: BTreeMap<&'static str, u32>,
    lifted: u32,
    modules: Modules,
    broken: Vec<String>,
}

impl Tally {
    fn pair<'a>(
        &mut self,
        device: &Device,
        pretend: &Pretend,
        named: &Named,
        methods: impl IntoIterator<Item = &'a Method>,
    ) {
        self.pairs += 1;
        let copies = self.pairs.is_multiple_of(2);
        let by_hand = methods.into_iter().map(|&method| match method {
            Method::Broadcast => Choice::method(method).with_keys_in_texture(copies),
            _ => Choice::method(method),
        });
        for choice in [Choice::default()].into_iter().chain(by_hand) {
            let outcome = match pretend.attention.plan_with(&named.problem, choice) {
                Ok(plan) => self.plan(&plan, device, named, choice),
                Err(error) => self.refusal(&error, device, named, choice),
            };
            let at = || format!("{}, {:?} on {}", named.name, choice.method, device.name);
            self.broken.extend(outcome.map_err(|why| format!("{why}: {}", at())).err());
        }
    }

    fn plan(
        &mut self,
        plan: &Plan,
        device: &Device,
        named: &Named,
        choice: Choice,
    ) -> Result<(), String> {
        let method = plan.method();
        *self.planned.entry(format!("{method:?}")).or_default() += 1;
        // Without keys there is nothing to store.
        if choice.method.is_some_and(|m| m != method) && named.problem.shape().kv_len > 0 {
            return Err(format!("planned {method:?}"));
        }
        within(plan, &device.limits)?;
        let mut dispatches = plan.describe().dispatches;
        dispatches.dedup_by(|a, b| a.wgsl == b.wgsl);
        dispatches.iter().try_for_each(|dispatch| self.modules.check(dispatch, device.traits))
    }

    fn refusal(
        &mut self,
        error: &Error,
        device: &Device,
        named: &Named,
        choice: Choice,
    ) -> Result<(), String> {
        match error {
            Error::Limit { what, need, got } if need > got => {
                *self.refused.entry(what).or_default() += 1;
                if is_there(what, device.traits, named) {
                    return Err(format!("{what}, which is there"));
                }
                let traits = able(device.traits, choice.method);
                let plan = |pretend: &Pretend| pretend.attention.plan_with(&named.problem, choice);
                self.lifted += u32::from(lift(plan, within, &device.limits, traits)?);
                Ok(())
            }
            Error::Unexpected { operand: Operand::Scores | Operand::Weights }
                if choice.method.is_some() && choice.method != Some(Method::Staged) =>
            {
                *self.refused.entry("scores or weights").or_default() += 1;
                Ok(())
            }
            error => Err(format!("{error:?}")),
        }
    }

    /// Of at least so many pairs, each method was planned for some, and many were refused at first.
    fn finish(&self, least: u32) {
        let Tally { pairs, planned, refused, lifted, modules, broken } = self;
        println!("{pairs} pairs; planned {planned:?} of {} modules", modules.len());
        println!("refused {refused:?}; {lifted} planned once what was named was there");
        assert!(broken.is_empty(), "{} broken:\n{}", broken.len(), broken.join("\n"));
        assert!(*pairs > least && planned.len() == Method::ALL.len() && *lifted > least / 5);
    }
}

/// What is asked for beside limits must not be there.
fn is_there(what: &str, traits: Traits, named: &Named) -> bool {
    let shape = named.problem.shape();
    match what {
        "subgroups of one size, with the feature SUBGROUP" => has_lanes(traits),
        "matrix units, that is EXPERIMENTAL_COOPERATIVE_MATRIX, SHADER_F16 and SUBGROUP enabled on the \
         device, as by Gpu::from_adapter"
        | "matrices of 8 or 16 rows, f16 to f32, among the sizes that Options::from_adapter finds" => {
            has_matrices(traits)
        }
        "subgroups of 8 to 64 lanes for matrices of 8 rows, of 16 to 64 for 16" => {
            let least = if traits.matrices.contains(&16) { 16 } else { 8 };
            (least..=64).contains(&traits.lanes[1])
        }
        "f16 for Q, K and V, as matrices multiply" => named.is_f16,
        "head_dim" => shape.head_dim <= 128,
        "value_dim" => shape.value_dim <= 128,
        _ => false,
    }
}

fn has_lanes(traits: Traits) -> bool {
    traits.features.contains(Features::SUBGROUP) && traits.lanes[0] == traits.lanes[1]
}

fn has_matrices(traits: Traits) -> bool {
    traits.features.contains(MATRIX) && !traits.matrices.is_empty()
}

/// The device with what a method takes beside limits.
fn able(traits: Traits, method: Option<Method>) -> Traits {
    let lanes = [32, 32];
    match method {
        Some(Method::Broadcast) if !has_lanes(traits) => {
            Traits { features: traits.features | Features::SUBGROUP, lanes, ..traits }
        }
        Some(Method::Matrix) => {
            Traits { features: traits.features | MATRIX, lanes, matrices: &[16], ..traits }
        }
        _ => traits,
    }
}
