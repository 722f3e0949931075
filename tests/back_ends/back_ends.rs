//! Every module that the planner composes, in the languages of Vulkan, Metal, DirectX 12 and OpenGL ES.

use naga::ShaderStage;
use naga::back::{glsl, hlsl, msl, spv};
use wgpu_attention_support::modules::{MATRICES, modules, read};

#[test]
fn every_back_end_takes_every_module() {
    let modules = modules();
    for dispatch in modules.values() {
        let (module, info) = read(dispatch);
        let stage = ShaderStage::Compute;
        let name = dispatch.kernel.to_string();
        let words = spv::write_vec(&module, &info, &spv::Options::default(), None);
        assert!(words.unwrap_or_else(|error| panic!("{name}, SPIR-V: {error}")).len() > 5);

        // Metal has matrices of 8 rows, and DirectX none.
        if !dispatch.wgsl.contains("coop_mat16x16") {
            let options = msl::Options { lang_version: (2, 3), ..Default::default() };
            let pipeline = msl::PipelineOptions::default();
            let written = msl::write_string(&module, &info, &options, &pipeline);
            let text = written.unwrap_or_else(|error| panic!("{name}, MSL: {error}")).0;
            assert!(text.contains("kernel void"), "{name}, MSL");
        }
        if dispatch.wgsl.contains(MATRICES) {
            continue;
        }

        let (mut text, options) = (String::new(), hlsl::Options::default());
        let pipeline = hlsl::PipelineOptions { entry_point: Some((stage, name.clone())) };
        let written = hlsl::Writer::new(&mut text, &options, &pipeline).write(&module, &info, None);
        written.unwrap_or_else(|error| panic!("{name}, HLSL: {error}"));

        // GLSL has no f16, and no such device has either.
        if dispatch.wgsl.starts_with("enable f16;") {
            continue;
        }
        let (mut text, options) = (String::new(), glsl::Options::default());
        let pipeline =
            glsl::PipelineOptions { shader_stage: stage, entry_point: name, multiview: None };
        let policies = naga::proc::BoundsCheckPolicies::default();
        glsl::Writer::new(&mut text, &module, &info, &options, &pipeline, policies)
            .and_then(|mut writer| writer.write())
            .unwrap_or_else(|error| panic!("{}, GLSL: {error}", dispatch.kernel));
    }
    println!("{} modules as SPIR-V, MSL, HLSL, GLSL", modules.len());
}
