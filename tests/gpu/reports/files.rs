//! Reports whose inputs are files, by every kernel.

use safetensors::Dtype;
use wgpu_attention::Element;

use crate::kernels::{Who, every};
use wgpu_attention_support::cases::case;
use wgpu_attention_support::data::{Data, Given};
use wgpu_attention_support::reports::{Report, load};

#[test]
fn reported_files_are_right() {
    reported_files(false);
}

pub fn reported_files(whole: bool) {
    let mut wrong = Vec::new();
    for (number, Report { case: of, types }) in load().into_iter().enumerate() {
        let inputs = of.inputs();
        let [q, k, v] = [inputs.q, inputs.k, inputs.v].map(<[f32]>::to_vec);
        let bias = inputs.extras.bias.map(<[f32]>::to_vec);
        let mask = inputs.extras.mask.map(<[bool]>::to_vec);
        let data = Data { q, k, v, bias, given: Given { mask, ..Given::default() } };
        // O in f16 would be off by more than the reports allow.
        let [queries, keys] = types.map(|dtype| match dtype {
            Dtype::F16 => Element::F16,
            Dtype::BF16 => Element::Bf16,
            _ => Element::F32,
        });
        let queries = if queries == Element::F16 { Element::F32 } else { queries };
        let stored = case(of.name.clone(), of.problem.clone()).stored_as(queries, keys);
        let who = if whole { Who::Sizes } else { Who::Half(number) };
        every(stored, data, who, |name, output| {
            wrong.extend(of.check(output).err().map(|why| format!("{name}, {why}")));
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
