//! The dispatches of a plan as a program would record them without this library: the same modules,
//! bindings and grids, in a loop over three wgpu calls.

use wgpu_attention::{Dispatch, Plan, wgpu};

pub struct ByHand {
    dispatches: Vec<(wgpu::ComputePipeline, wgpu::BindGroup, [u32; 3])>,
}

impl ByHand {
    /// Of a plan that binds buffers only. They are all the same zeros: nothing is computed.
    pub fn new(device: &wgpu::Device, plan: &Plan) -> ByHand {
        let buffer = |usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 1 << 16,
                usage,
                mapped_at_creation: false,
            })
        };
        let uniform = buffer(wgpu::BufferUsages::UNIFORM);
        let dispatch = |d: Dispatch| {
            let source = wgpu::ShaderSource::Wgsl(d.wgsl.into());
            let module =
                device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
            let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: None,
                module: &module,
                entry_point: Some(d.kernel),
                compilation_options: Default::default(),
                cache: None,
            });
            // Uniforms come first.
            let buffers: Vec<wgpu::Buffer> = (d.bindings.iter())
                .map(|&binding| match binding {
                    0 | 1 => uniform.clone(),
                    _ => buffer(wgpu::BufferUsages::STORAGE),
                })
                .collect();
            let entries: Vec<_> = (d.bindings.iter().zip(&buffers))
                .map(|(&binding, buffer)| wgpu::BindGroupEntry {
                    binding,
                    resource: buffer.as_entire_binding(),
                })
                .collect();
            let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.get_bind_group_layout(0),
                entries: &entries,
            });
            (pipeline, bind_group, d.grid)
        };
        ByHand { dispatches: plan.describe().dispatches.into_iter().map(dispatch).collect() }
    }

    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
        for (pipeline, bind_group, [x, y, z]) in &self.dispatches {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, bind_group, &[]);
            pass.dispatch_workgroups(*x, *y, *z);
        }
    }
}
