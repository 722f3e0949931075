//! Attention between the program's own kernels: one encoder, one pass, one submit.

use wgpu_attention::{Bound, Buffers, Choice, Inputs, Method, Operand, Problem, Shape, Tile};

use crate::program::{Program, Reference, USAGE};
use crate::support::{Data, max_error};

const SHAPE: Shape = Shape { q_len: 40, ..Shape::self_attention(2, 3, 77, 8) };

/// The program's own kernels: q = 2 x before, y = o + 1 after.
const OWN: &str = "
@group(0) @binding(0) var<storage, read> before: array<f32>;
@group(0) @binding(1) var<storage, read_write> after: array<f32>;

@compute @workgroup_size(64)
fn double(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&before)) {
        after[id.x] = 2.0 * before[id.x];
    }
}

@compute @workgroup_size(64)
fn add_one(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&before)) {
        after[id.x] = before[id.x] + 1.0;
    }
}
";

/// One of them over two buffers.
pub struct Own {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    groups: u32,
}

impl Own {
    pub fn new(
        program: &Program,
        entry: &str,
        source: &wgpu::Buffer,
        target: &wgpu::Buffer,
    ) -> Own {
        let module = program.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(OWN.into()),
        });
        let pipeline = program.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some(entry),
            compilation_options: Default::default(),
            cache: None,
        });
        let entries = [
            wgpu::BindGroupEntry { binding: 0, resource: source.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: target.as_entire_binding() },
        ];
        let bind_group = program.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        Own { pipeline, bind_group, groups: (source.size() / 4).div_ceil(64) as u32 }
    }

    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bind_group, &[]);
        pass.dispatch_workgroups(self.groups, 1, 1);
    }
}

/// Buffers of one call: x, q, k, v, o, y, scratch.
struct Call {
    x: wgpu::Buffer,
    q: wgpu::Buffer,
    k: wgpu::Buffer,
    v: wgpu::Buffer,
    o: wgpu::Buffer,
    y: wgpu::Buffer,
    scratch: wgpu::Buffer,
    want: Reference,
}

impl Call {
    fn new(program: &Program, problem: &Problem, scratch_bytes: u64, seed: u64) -> Call {
        let data = Data::new(problem, seed);
        let doubled: Vec<f32> = data.q.iter().map(|x| 2.0 * x).collect();
        let inputs = Inputs::new(&doubled, &data.k, &data.v);
        let o = 4 * problem.elements(Operand::O);
        Call {
            x: program.buffer(&data.q),
            q: program.empty(4 * problem.elements(Operand::Q), USAGE),
            k: program.buffer(&data.k),
            v: program.buffer(&data.v),
            o: program.empty(o, USAGE),
            y: program.empty(o, USAGE),
            scratch: program.empty(scratch_bytes, USAGE),
            want: Reference::new(problem, inputs).expect("a reference"),
        }
    }

    fn buffers(&self) -> Buffers<'_> {
        let buffers = Buffers::new(&self.q, &self.k, &self.v, &self.o);
        buffers.with(Operand::Scratch, &self.scratch)
    }

    fn check(&self, program: &Program) {
        let y: Vec<f32> = program.read(&self.y).iter().map(|y| y - 1.0).collect();
        let (error, most) =
            (max_error(&y, &self.want.want.o), self.want.tolerance(Operand::O) + 2e-7);
        assert!(error <= most, "{error} > {most}");
    }
}

fn plans() -> Vec<(Problem, wgpu_attention::Plan)> {
    let program = Program::shared();
    let problem = Problem::new(SHAPE);
    let mut all = Vec::new();
    for attention in [&program.attention, &program.split] {
        for choice in [Choice::tile(Tile { queries: 32, keys: 32 }), Choice::method(Method::Staged)]
        {
            all.push((problem.clone(), attention.plan_with(&problem, choice).expect("a plan")));
        }
    }
    all
}

#[test]
fn one_pass_with_the_programs_own_kernels() {
    let program = Program::shared();
    for (seed, (problem, plan)) in plans().into_iter().enumerate() {
        println!(
            "{}\n  scratch {} B, owned {} B",
            plan.describe(),
            plan.scratch_bytes(),
            plan.owned_bytes()
        );
        assert!(plan.owned_bytes() > 0);
        assert!(plan.describe().to_string().contains(plan.describe().dispatches[0].kernel));
        let call = Call::new(program, &problem, plan.scratch_bytes(), seed as u64);
        let before = Own::new(program, "double", &call.x, &call.q);
        let after = Own::new(program, "add_one", &call.o, &call.y);
        let bound = plan.bind(call.buffers()).expect("bound");
        program.submit(|encoder| {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            before.record(&mut pass);
            bound.encode(&mut pass);
            after.record(&mut pass);
        });
        call.check(program);
    }
}

/// The same in passes of its own, copies before and after.
#[test]
fn encode_in_between_copies() {
    let program = Program::shared();
    for (seed, (problem, plan)) in plans().into_iter().enumerate() {
        let call = Call::new(program, &problem, plan.scratch_bytes(), 10 + seed as u64);
        let before = Own::new(program, "double", &call.x, &call.q);
        let after = Own::new(program, "add_one", &call.o, &call.y);
        let bound = plan.bind(call.buffers()).expect("bound");
        let copy = program.empty(call.y.size(), USAGE);
        let record = |encoder: &mut wgpu::CommandEncoder, own: &Own| {
            own.record(&mut encoder.begin_compute_pass(&Default::default()));
        };
        program.submit(|encoder| {
            record(encoder, &before);
            bound.encode_in(encoder);
            record(encoder, &after);
            encoder.copy_buffer_to_buffer(&call.y, 0, &copy, 0, copy.size());
        });
        assert_eq!(program.read(&copy), program.read(&call.y));
        call.check(program);
    }
}

/// One plan, several Bounds over one scratch, recorded one after the other into one pass, the
/// first one twice.
#[test]
fn several_bounds_of_one_plan() {
    let program = Program::shared();
    for (seed, (problem, plan)) in plans().into_iter().enumerate() {
        let scratch = program.empty(plan.scratch_bytes(), USAGE);
        let calls: Vec<Call> =
            (0..3).map(|at| Call::new(program, &problem, 0, 20 + 3 * seed as u64 + at)).collect();
        let bounds: Vec<(Own, Bound, Own)> = calls
            .iter()
            .map(|call| {
                let before = Own::new(program, "double", &call.x, &call.q);
                let after = Own::new(program, "add_one", &call.o, &call.y);
                let given = call.buffers().with(Operand::Scratch, &scratch);
                (before, plan.bind(given).expect("bound"), after)
            })
            .collect();
        program.submit(|encoder| {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            for (before, bound, after) in bounds.iter().chain(&bounds[..1]) {
                before.record(&mut pass);
                bound.encode(&mut pass);
                after.record(&mut pass);
            }
        });
        calls.iter().for_each(|call| call.check(program));
    }
}

/// A plan asks for just as much scratch as it uses.
#[test]
fn scratch_is_stated_exactly() {
    let program = Program::shared();
    let mut with = 0;
    for (problem, plan) in plans() {
        let bytes = plan.scratch_bytes();
        let call = Call::new(program, &problem, bytes, 50);
        if bytes == 0 {
            continue;
        }
        with += 1;
        let short = program.empty(bytes - 1, USAGE);
        let error =
            plan.bind(call.buffers().with(Operand::Scratch, &short)).expect_err("too short");
        let want = wgpu_attention::Error::Length {
            operand: Operand::Scratch,
            need: bytes,
            got: bytes - 1,
        };
        assert_eq!(error, want);
        let none = Buffers::new(&call.q, &call.k, &call.v, &call.o);
        let error = plan.bind(none).expect_err("no scratch");
        assert_eq!(error, wgpu_attention::Error::Missing { operand: Operand::Scratch });
        plan.bind(call.buffers()).expect("enough scratch");
        program.check();
    }
    assert_eq!(with, 3, "only one split of the fused kernel needs none");
}
