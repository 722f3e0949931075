//! Compiled pipelines in a file.

use std::fs;

use wgpu_attention::{
    Attention, Choice, Error, Gpu, Loaded, Method, Options, PipelineFile, Problem, Shape,
};

use crate::support::{Data, default_limits_gpu, gpu, max_error};

fn is_refused(gpu: &Gpu) {
    let error = PipelineFile::open(gpu, "anywhere").expect_err("no feature");
    let want = Error::Limit { what: "the feature PIPELINE_CACHE", need: 1, got: 0 };
    assert_eq!(error, want);
}

#[test]
fn none_without_the_feature() {
    is_refused(default_limits_gpu());
}

/// On Vulkan, where wgpu always has the feature; elsewhere it is refused.
#[test]
fn kept_in_a_file() {
    let has = gpu().device().features().contains(wgpu::Features::PIPELINE_CACHE);
    assert_eq!(has, gpu().device().adapter_info().backend == wgpu::Backend::Vulkan);
    if !has {
        is_refused(gpu());
        println!("1 skipped: not Vulkan");
        return;
    }
    let folder = std::env::temp_dir().join(format!("wgpu-attention-pipes-{}", std::process::id()));
    // Saving makes it.
    assert!(!folder.exists());
    let problem = Problem::new(Shape::self_attention(1, 2, 9, 4));
    let data = Data::new(&problem, 1);
    let want = gpu().attention(&problem, data.inputs()).expect("an output").o;
    let run = |file: &PipelineFile| {
        let options = Options::default().pipeline_cache(file.cache().clone());
        let attention = Attention::with(gpu().device(), options);
        let gpu: Gpu = gpu().clone().with_attention(attention);
        let got = gpu.attention(&problem, data.inputs()).expect("an output").o;
        assert_eq!(max_error(&got, &want), 0.0);
    };
    let (file, loaded) = PipelineFile::open(gpu(), &folder).expect("a cache");
    assert_eq!(loaded, Loaded::Missing);
    run(&file);
    file.save().expect("written");
    let good = fs::read(file.path()).expect("bytes");
    println!("{}: {} bytes", file.path().display(), good.len());

    let (file, loaded) = PipelineFile::open(gpu(), &folder).expect("a cache");
    assert_eq!(loaded, Loaded::Fresh);
    run(&file);
    // What a planner was told before stays.
    let planner = gpu().planner().clone().without(Method::Flash);
    let planner = planner.with_pipeline_cache(file.cache().clone());
    let plan =
        |method| planner.plan_with(&problem, Choice::method(method)).map(|plan| plan.method());
    assert_eq!(plan(Method::Flash), Err(Error::Excluded { method: Method::Flash }));
    assert_eq!(plan(Method::Staged), Ok(Method::Staged));
    // A damaged one never reaches the driver.
    for at in (0..good.len()).step_by(good.len() / 50 + 1) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        fs::write(file.path(), bytes).expect("written");
        let (_, loaded) = PipelineFile::open(gpu(), &folder).expect("a cache");
        assert!(matches!(loaded, Loaded::Damaged(_)), "{at}: {loaded}");
    }
    fs::remove_dir_all(&folder).expect("removed");
}
