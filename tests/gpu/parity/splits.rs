//! Keys split as for a driver that ends loops early.

use wgpu_attention::Element;

use crate::checks::{Checked, EVERYTHING, FLASH, LSE, Run, STAGED, Wants, limited, table};
use wgpu_attention_support::cases::Case;

/// The smaller limit splits long tiles only, the larger one also the wide ones of few queries.
#[test]
fn split_keys() {
    split_keys_of(3);
}

/// One in so many cases.
pub fn split_keys_of(step: usize) {
    for (iterations, least) in [(300, 60 / step), (1200, 3usize.div_ceil(step))] {
        let gpu = limited(iterations);
        let splits = |checked: &Checked, choice, wants: Wants| {
            let plan = gpu.planner().plan_with(&wants(checked.case.problem.clone()), choice);
            plan.is_ok_and(|plan| plan.describe().split_keys.is_some())
        };
        for (name, choice, wants) in [("fused", FLASH, LSE), ("staged", STAGED, EVERYTHING)] {
            // Each kind alone, and all together: what it has to do with splits shows.
            let few = |checked: &&Checked| {
                let Case { name, types, given, .. } = &checked.case;
                let has_lengths = given.kv_lens.is_some() || given.q_lens.is_some();
                let kinds = [
                    checked.data.bias.is_some(),
                    given.mask.is_some(),
                    has_lengths,
                    given.cu_seqlens.is_some(),
                    given.slopes.is_some(),
                    given.sinks.is_some(),
                ];
                let alone = kinds.into_iter().filter(|&has| has).count() < 2;
                let plain = alone && *types == [Element::F32; 2];
                let some = ["packed, everything", "Bf16, mask, ALiBi, sinks", "quads, F16 and F16"];
                some.contains(&name.as_str())
                    || plain && (choice == STAGED || !name.starts_with("drawn"))
            };
            let split = table().iter().filter(few).step_by(step);
            let split: Vec<_> = split.filter(|checked| splits(checked, choice, wants)).collect();
            let name = &format!("{name}, split after {iterations} iterations");
            let [ran, skipped] = Run { name, gpu: &gpu, choice, wants }.check(split);
            assert!(ran >= least && skipped == 0, "{name}: {ran} ran, {skipped} skipped");
        }
    }
}
