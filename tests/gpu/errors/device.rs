//! Devices that cannot, that are not there, that go away.

use std::sync::mpsc;
use std::time::Duration;

use wgpu_attention::{Choice, Error, Gpu, Method, Operand, Problem, Shape};

use super::{assert_same, good, tile};
use crate::program::{Program, Reference};
use crate::support::{Data, max_error};

fn host(program: &Program) -> Gpu {
    Gpu::from_device(program.device.clone(), program.queue.clone())
        .with_attention(program.attention.clone())
}

/// Devices with one limit lowered: what does not fit is named, what fits is right.
#[test]
fn limits_too_low() {
    let usual = wgpu::Limits::default();
    let square = |tokens: u32, d: u32| Problem::new(Shape::self_attention(1, 2, tokens, d));
    let limit = |what, need, got| Error::Limit { what, need, got };
    // Operands fit 1 KiB, 2 x 15 x 15 scores do not.
    let stored = Shape::self_attention(1, 2, 15, 8);
    let staged = Choice::method(Method::Staged);
    let auto = Choice::default();
    let per_stage = "max_storage_buffers_per_shader_stage";
    let invocations = "max_compute_invocations_per_workgroup";
    let memory = "max_compute_workgroup_storage_size";
    // (limits, what does not fit and why, what does)
    let devices = [
        (
            wgpu::Limits {
                max_compute_invocations_per_workgroup: 16,
                max_compute_workgroup_size_x: 16,
                ..usual.clone()
            },
            vec![
                (square(9, 8), staged, limit(invocations, 64, 16)),
                (square(9, 8), tile(32, 32), limit(invocations, 64, 16)),
            ],
            vec![(square(40, 8), auto), (square(40, 8), tile(16, 16))],
        ),
        (
            wgpu::Limits { max_compute_workgroup_storage_size: 2 << 10, ..usual.clone() },
            vec![
                (square(9, 8), staged, limit(memory, 8192, 2048)),
                (square(9, 8), tile(4, 128), limit(memory, 4624, 2048)),
            ],
            vec![(square(40, 8), auto), (square(40, 8), tile(16, 16))],
        ),
        (
            wgpu::Limits { max_compute_workgroup_storage_size: 1 << 10, ..usual.clone() },
            vec![(square(9, 8), staged, limit(memory, 8192, 1024))],
            vec![(square(40, 8), tile(8, 8))],
        ),
        (
            wgpu::Limits { max_storage_buffers_per_shader_stage: 3, ..usual.clone() },
            vec![
                (square(9, 8), auto, limit(per_stage, 4, 3)),
                (square(9, 8).lse(), auto, limit(per_stage, 5, 3)),
                (square(9, 8).bias_shape(&[9]), staged, limit(per_stage, 4, 3)),
            ],
            vec![(square(40, 8), staged)],
        ),
        (
            wgpu::Limits {
                max_storage_buffer_binding_size: 1 << 10,
                max_buffer_size: 1 << 14,
                ..usual.clone()
            },
            vec![
                (square(17, 8), auto, limit("q", 1088, 1024)),
                (Problem::new(stored).scores(), auto, limit("scores", 1800, 1024)),
                (Problem::new(stored), staged, limit("stored scores", 1800, 1024)),
            ],
            vec![(square(9, 8), auto), (square(9, 8), staged), (square(9, 8).scores(), auto)],
        ),
        (
            wgpu::Limits { max_uniform_buffer_binding_size: 64, ..usual },
            vec![(square(9, 8), auto, limit("max_uniform_buffer_binding_size", 236, 64))],
            vec![],
        ),
    ];
    for (limits, wrong, right) in devices {
        let program = Program::shared().neighbour(limits);
        let gpu = host(&program);
        for (problem, choice, want) in wrong {
            let data = Data::new(&problem, 2);
            let planned = gpu.planner().plan_with(&problem, choice).expect_err("too much");
            assert_same("plan", &planned, &want);
            let called = gpu.attention_with(&problem, data.inputs(), choice).expect_err("too much");
            assert_same("host", &called, &want);
        }
        for (problem, choice) in right {
            let data = Data::new(&problem, 2);
            let reference = Reference::new(&problem, data.inputs()).expect("a reference");
            let got = gpu.attention_with(&problem, data.inputs(), choice);
            let got = got.unwrap_or_else(|error| panic!("{choice:?}: {error}"));
            let error = max_error(&got.o, &reference.want.o);
            assert!(error <= reference.tolerance(Operand::O), "{choice:?}: {error}");
        }
        program.check();
    }
}

/// A host buffer that no device of this size can hold.
#[test]
fn buffers_too_large_for_the_host_call() {
    let usual = wgpu::Limits::default();
    let limits = wgpu::Limits { max_buffer_size: 1 << 12, ..usual };
    let program = Program::shared().neighbour(limits);
    let gpu = host(&program);
    let shape = Shape::self_attention(1, 2, 9, 4);
    // The binding begins at the operand's first element, the host's buffer at its slice's.
    let layout = wgpu_attention::Layout::head_major(2, 9, 4).at(2000);
    let problem = Problem::new(shape).layout(Operand::Q, layout);
    let data = Data::new(&problem, 1);
    let error = gpu.attention(&problem, data.inputs()).expect_err("too large");
    assert_same("q", &error, &Error::Limit { what: "q", need: 4 * 2072, got: 1 << 12 });
    good(&gpu);
    program.check();
}

#[test]
fn no_adapter() {
    let descriptor = wgpu::InstanceDescriptor {
        backends: wgpu::Backends::empty(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    };
    let instance = wgpu::Instance::new(descriptor);
    let error = pollster::block_on(Gpu::from_instance(&instance)).expect_err("no back ends");
    let Error::NoAdapter(why) = &error else { panic!("{error:?}") };
    assert_same("no adapter", &error, &Error::NoAdapter(why.clone()));
    assert!(why.contains("apt-get install"), "{why:?} does not say what to install");
    let found = pollster::block_on(Gpu::from_instance(&Program::shared().instance));
    good(&found.expect("an adapter"));
}

/// Minutes, as a driver may compile for as many seconds: no call is slow enough for this but one that
/// never returns.
const HANGS: Duration = Duration::from_secs(600);

/// Runs a call elsewhere and gives up on it: a hang is a failure, not a hang.
fn in_time<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(call()));
    receiver.recv_timeout(HANGS).expect("an answer in ten minutes: it hangs, or panicked")
}

/// Every call on a device that is gone is an error, whatever had been compiled before.
#[test]
fn device_lost() {
    for warm in [false, true] {
        let program = Program::shared().neighbour(wgpu::Limits::default());
        let gpu = host(&program);
        let problem = Problem::new(Shape::self_attention(1, 2, 9, 4));
        if warm {
            good(&gpu);
        }
        program.device.destroy();
        for choice in [Choice::default(), Choice::method(Method::Staged)] {
            let (gpu, problem) = (gpu.clone(), problem.clone());
            let error = in_time(move || {
                let data = Data::new(&problem, 1);
                gpu.attention_with(&problem, data.inputs(), choice).map(|_| ())
            });
            let error = error.expect_err("a lost device");
            let Error::DeviceLost(why) = &error else { panic!("warm {warm}: {error:?}") };
            assert_same("lost", &error, &Error::DeviceLost(why.clone()));
        }
        program.check();
    }
    let fresh = Program::shared().neighbour(wgpu::Limits::default());
    good(&host(&fresh));
    good(&super::gpu());
}

/// Planning, binding and lengths on a device that is gone neither panic nor report to its handler.
#[test]
fn device_lost_in_the_hands_of_a_program() {
    use wgpu_attention::Buffers;
    let program = Program::shared().neighbour(wgpu::Limits::default());
    let problem = Problem::new(Shape::self_attention(1, 2, 9, 4));
    let buffers = [Operand::Q, Operand::K, Operand::V, Operand::O]
        .map(|o| program.empty(4 * problem.elements(o), crate::program::USAGE));
    let plan = program.attention.plan(&problem).expect("a plan");
    let [q, k, v, o] = &buffers;
    let bound = plan.bind(Buffers::new(q, k, v, o)).expect("bound");
    program.device.destroy();
    // A plan may come to nothing or to an error; bound it cannot be.
    let other = Problem::new(Shape::self_attention(1, 2, 9, 2));
    for plan in [Ok(plan), program.attention.plan(&other)] {
        let bound = plan.and_then(|plan| plan.bind(Buffers::new(q, k, v, o)).map(|_| ()));
        let known = matches!(bound, Err(Error::DeviceLost(_) | Error::Device(_)));
        assert!(known, "on a lost device: {bound:?}");
    }
    program.check();
    let _ = bound.set_lengths(&program.queue, 3, 3);
    let mut encoder = program.device.create_command_encoder(&Default::default());
    bound.encode_in(&mut encoder);
    program.queue.submit([encoder.finish()]);
    program.uncaptured().iter().for_each(|text| println!("the program's own submit: {text}"));
}
