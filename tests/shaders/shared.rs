//! What compiles once for many problems: a module's text is its key.

use std::collections::{BTreeMap, BTreeSet};

use wgpu::naga::{
    back::spv,
    compact::{KeepUnused, compact},
    front::wgsl,
    valid::{ValidationFlags, Validator},
};
use wgpu_attention::{Attention, Choice, Element, Group, Method, Problem, Shape, Tile};

use wgpu_attention_support::lanes;
use wgpu_attention_support::modules::{CAPABILITIES, modules};

/// What an entry point does not reach is not compiled, but would compile the rest again.
#[test]
fn equal_code_has_equal_text() {
    let mut names = BTreeMap::new();
    for dispatch in modules().values() {
        let mut module = wgsl::parse_str(&dispatch.wgsl).expect("WGSL");
        compact(&mut module, KeepUnused::No);
        let info = Validator::new(ValidationFlags::all(), CAPABILITIES).validate(&module);
        // Without names.
        let options = spv::Options { flags: spv::WriterFlags::empty(), ..Default::default() };
        let words = spv::write_vec(&module, &info.expect("a module"), &options, None);
        let same = names.insert(words.expect("SPIR-V"), &dispatch.wgsl);
        assert!(
            same.is_none(),
            "two texts of one {}:\n{}",
            dispatch.kernel,
            same.map_or("", |text| text.as_str())
        );
    }
}

/// The texts of one kernel over all of these plans.
fn texts(kernel: &str, plans: impl IntoIterator<Item = (Problem, Choice)>) -> BTreeSet<String> {
    let required_features = wgpu::Features::SHADER_F16;
    let descriptor = wgpu::DeviceDescriptor { required_features, ..Default::default() };
    let attention = Attention::new(&lanes::device(&descriptor, [8, 8]));
    let dispatches = plans.into_iter().flat_map(|(problem, choice)| {
        let plan = attention.plan_with(&problem, choice);
        let plan = plan.unwrap_or_else(|error| panic!("{error}: {choice:?} {problem:?}"));
        plan.describe().dispatches
    });
    let texts: BTreeSet<_> = dispatches.filter(|d| d.kernel == kernel).map(|d| d.wgsl).collect();
    assert!(!texts.is_empty(), "no {kernel}");
    texts
}

fn dims() -> impl Iterator<Item = Shape> {
    let dims = [(4, 4), (64, 64), (64, 128), (5, 7), (576, 512)];
    dims.into_iter()
        .map(|(head_dim, value_dim)| Shape::self_attention(1, 2, 40, head_dim).value_dim(value_dim))
}

#[test]
fn softmax_for_all_dims_and_types() {
    let types = [Element::F32, Element::F16, Element::Bf16];
    let problems = dims()
        .flat_map(|shape| types.map(|element| Problem::new(shape).element(Group::Keys, element)));
    let plans = problems.map(|problem| (problem, Choice::method(Method::Staged)));
    assert_eq!(texts("softmax", plans).len(), 1);
}

#[test]
fn pack_for_all_tiles() {
    let problem = Problem::new(Shape::self_attention(1, 2, 40, 64));
    let tiles = [(8, 4), (8, 16), (16, 8), (32, 12)].map(|(queries, keys)| Tile { queries, keys });
    let plans = tiles.map(|tile| {
        let choice = Choice::method(Method::Broadcast).with_tile(tile).with_keys_in_texture(true);
        (problem.clone().lse(), choice)
    });
    assert_eq!(texts("broadcast", plans.clone()).len(), plans.len());
    assert_eq!(texts("pack", plans).len(), 1);
}
