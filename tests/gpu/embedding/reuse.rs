//! Plan once, bind once, submit for ever; from any thread, on any device.

use std::future::Future;

use wgpu_attention::{
    Attention, Bound, Buffers, Choice, Error, Gpu, Method, Operand, Plan, Problem, Shape, Tile,
};

use crate::program::{Program, Reference, USAGE};
use crate::support::{Data, max_error};

const TILE: Choice = Choice::tile(Tile { queries: 32, keys: 32 });

/// A bound plan and its memory.
struct Call {
    problem: Problem,
    bound: Bound,
    /// Q, K, V, O.
    buffers: [wgpu::Buffer; 4],
}

impl Call {
    fn new(program: &Program, attention: &Attention, problem: &Problem, choice: Choice) -> Call {
        let plan = attention.plan_with(problem, choice).expect("a plan");
        let buffers = [Operand::Q, Operand::K, Operand::V, Operand::O]
            .map(|operand| program.empty(4 * problem.elements(operand), USAGE));
        let scratch = program.empty(plan.scratch_bytes(), USAGE);
        let [q, k, v, o] = &buffers;
        let given = Buffers::new(q, k, v, o).with(Operand::Scratch, &scratch);
        let bound = plan.bind(given).expect("bound");
        Call { problem: problem.clone(), bound, buffers }
    }

    /// New inputs, one submit, and the answer checked.
    fn run(&self, program: &Program, seed: u64) {
        let data = Data::new(&self.problem, seed);
        for (buffer, x) in self.buffers.iter().zip([&data.q, &data.k, &data.v]) {
            program.queue.write_buffer(buffer, 0, bytemuck::cast_slice(x));
        }
        program.submit(|encoder| self.bound.encode_in(encoder));
        let reference = Reference::new(&self.problem, data.inputs()).expect("a reference");
        let error = max_error(&program.read(&self.buffers[3]), &reference.want.o);
        let most = reference.tolerance(Operand::O);
        assert!(error <= most, "seed {seed}: {error} > {most}");
    }
}

#[test]
fn one_bound_serves_a_hundred_submits() {
    // Its own instance, so that nobody else's objects are counted.
    let program = Program::new(wgpu::Limits::default());
    let problem = Problem::new(Shape::self_attention(1, 2, 33, 8).kv_len(50));
    let calls = [
        Call::new(&program, &program.split, &problem, TILE),
        Call::new(&program, &program.attention, &problem, Choice::method(Method::Staged)),
    ];
    let objects = || {
        program.device.poll(wgpu::PollType::wait_indefinitely()).expect("a live device");
        let hub = program.instance.generate_report().expect("a report").hub;
        let all = [
            ("buffers", hub.buffers),
            ("bind groups", hub.bind_groups),
            ("bind group layouts", hub.bind_group_layouts),
            ("pipelines", hub.compute_pipelines),
            ("pipeline layouts", hub.pipeline_layouts),
            ("shader modules", hub.shader_modules),
        ];
        all.map(|(name, report)| (name, report.num_allocated))
    };
    calls.iter().for_each(|call| call.run(&program, 0));
    let before = objects();
    for seed in 1..100 {
        calls[seed as usize % 2].run(&program, seed);
    }
    assert_eq!(objects(), before);
    println!("100 submits, {before:?}");
    let [(_, buffers), (_, bind_groups), ..] = before;
    assert!(buffers >= 10 && bind_groups >= 5, "objects are not counted");
}

/// Planning, binding, recording and submitting at once over one Attention: the same problems, so
/// that threads meet in the cache, and each thread's own.
#[test]
fn threads_share_one_attention() {
    let program = Program::new(wgpu::Limits::default());
    let program = &program;
    let start = &std::sync::Barrier::new(4);
    let work = |thread: u32| {
        start.wait();
        let call = |round: u32| {
            let shape = Shape::self_attention(1, 1 + thread, 20 + 20 * round, 8);
            let shape = if round == 2 { shape.value_dim(4 * (1 + thread)) } else { shape };
            let attention = if round == 1 { &program.split } else { &program.attention };
            let problem = Problem::new(shape).causal();
            let choice = if thread == 3 { Choice::method(Method::Staged) } else { TILE };
            let call = Call::new(program, attention, &problem, choice);
            call.run(program, u64::from(10 * thread + round));
            call
        };
        (0..3).map(call).collect::<Vec<_>>()
    };
    // Calls are kept: a pipeline compiled twice is then there twice.
    let calls: Vec<Call> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(calls.len(), 12);
    // Fused: value_dim 4, 8, 12, then flash and merge with splits. Staged: scores and softmax, values
    // of 8 and of 16; the other planner's are the same. Threads that want the same text wait for one
    // pipeline.
    let hub = program.instance.generate_report().expect("a report").hub;
    assert_eq!(hub.compute_pipelines.num_allocated, 3 + 2 + 2 + 2);
}

/// A Bound recorded by several threads, each into its own encoder.
#[test]
fn threads_share_one_bound() {
    let program = Program::shared();
    let problem = Problem::new(Shape::self_attention(1, 2, 33, 8).kv_len(50));
    let call = Call::new(program, &program.split, &problem, TILE);
    call.run(program, 7);
    let before = program.read(&call.buffers[3]);
    let zeros = vec![0.0f32; before.len()];
    program.queue.write_buffer(&call.buffers[3], 0, bytemuck::cast_slice(&zeros));
    let record = || {
        let mut encoder = program.device.create_command_encoder(&Default::default());
        call.bound.encode_in(&mut encoder);
        encoder.finish()
    };
    let recorded: Vec<wgpu::CommandBuffer> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(record)).collect();
        threads.into_iter().map(|thread| thread.join().expect("recorded")).collect()
    });
    program.queue.submit(recorded);
    assert_eq!(program.read(&call.buffers[3]), before);
}

#[test]
fn two_devices_at_once() {
    let programs = [
        Program::new(wgpu::Limits::default()),
        Program::shared().neighbour(wgpu::Limits::downlevel_defaults()),
    ];
    let problem = Problem::new(Shape::self_attention(1, 2, 33, 8));
    let calls =
        programs.each_ref().map(|p| Call::new(p, &p.attention, &problem, Choice::default()));
    for round in 0..2 {
        for (call, program) in calls.iter().zip(&programs) {
            call.run(program, round);
        }
    }
    // One goes, the other stays.
    let [gone, stays] = programs;
    gone.device.destroy();
    calls[1].run(&stays, 9);
}

fn shared_between_threads<T: Send + Sync + 'static>() {}

#[test]
fn plans_and_bounds_go_anywhere() {
    shared_between_threads::<Attention>();
    shared_between_threads::<Plan>();
    shared_between_threads::<Bound>();
    shared_between_threads::<Gpu>();
    shared_between_threads::<Problem>();
    shared_between_threads::<Error>();
    // Clones outlive what they came from.
    let program = Program::shared();
    let problem = Problem::new(Shape::self_attention(1, 1, 9, 8));
    let call = {
        let attention = Attention::new(&program.device);
        Call::new(program, &attention.clone(), &problem, Choice::default())
    };
    let moved = std::thread::spawn(move || {
        call.run(program, 3);
        call
    });
    moved.join().expect("ran elsewhere").run(program, 4);
}

/// Awaits a future that must be free to change threads.
fn block_on<F: Future + Send>(future: F) -> F::Output {
    pollster::block_on(future)
}

#[test]
fn async_forms_do_the_same() {
    let program = Program::shared();
    let problem = Problem::new(Shape::self_attention(1, 2, 33, 8));
    let data = Data::new(&problem, 5);
    let reference = Reference::new(&problem, data.inputs()).expect("a reference");
    let buffers = [&data.q, &data.k, &data.v].map(|x| program.buffer(x));
    let o = program.empty(4 * problem.elements(Operand::O), USAGE);
    let plan = block_on(program.attention.plan_async(&problem, TILE)).expect("a plan");
    let [q, k, v] = &buffers;
    let bound = block_on(plan.bind_async(Buffers::new(q, k, v, &o))).expect("bound");
    program.submit(|encoder| bound.encode_in(encoder));
    let got = program.read(&o);
    let most = reference.tolerance(Operand::O);
    assert!(max_error(&got, &reference.want.o) <= most);

    // The host call on the program's own device, awaited and not.
    let gpu = Gpu::from_device(program.device.clone(), program.queue.clone())
        .with_attention(program.attention.clone());
    let host = block_on(gpu.attention_async(&problem, data.inputs(), TILE)).expect("an answer");
    assert_eq!(host.o, got);
    assert_eq!(gpu.attention_with(&problem, data.inputs(), TILE).expect("an answer"), host);

    // Errors come the same way, on another thread too.
    let wrong = Problem::new(Shape { head_dim: 0, ..problem.shape() });
    let want = wrong.validate().expect_err("no head_dim");
    let attention = program.attention.clone();
    let thread = std::thread::spawn(move || {
        block_on(attention.plan_async(&wrong, Choice::default())).expect_err("no head_dim")
    });
    assert_eq!(thread.join().expect("no panic"), want);
    let missing = Buffers::default().with(Operand::Q, q);
    let error = block_on(plan.bind_async(missing)).expect_err("too few buffers");
    assert_eq!(error, Error::Missing { operand: Operand::K });
    program.check();
}
