//! A compiled module, and what it takes to dispatch it.

use crate::Attention;
use crate::buffers::Bindable;
use crate::kernel::{Module, Slot};

pub(crate) struct Pipeline {
    pub module: Module,
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
}

/// By name: the text is long.
impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pipeline").field(&self.module.name).finish()
    }
}

impl Pipeline {
    pub fn compile(attention: &Attention, module: Module) -> Pipeline {
        let device = attention.device();
        let name = module.name;
        let label = format!("wgpu-attention {name}");
        let entries: Vec<_> = module
            .slots
            .iter()
            .map(|slot| wgpu::BindGroupLayoutEntry {
                binding: *slot as u32,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: slot.kind(),
                count: None,
            })
            .collect();
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(&label),
            entries: &entries,
        });
        let source = wgpu::ShaderModuleDescriptor {
            label: Some(&label),
            source: wgpu::ShaderSource::Wgsl(module.wgsl.as_str().into()),
        };
        // SAFETY: the text is this crate's own, and each kernel's header proves that its indices stay
        // within the bindings that `Plan::bind` checks and that its loops end.
        let shader = unsafe {
            device.create_shader_module_trusted(source, wgpu::ShaderRuntimeChecks::unchecked())
        };
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&label),
            layout: Some(&device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some(&label),
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            })),
            module: &shader,
            entry_point: Some(name),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Every kernel writes its workgroup memory before it reads it.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: attention.pipeline_cache(),
        });
        Pipeline { module, pipeline, layout }
    }

    /// A dispatch with everything bound: each slot to its range.
    pub fn dispatch<'a, B: Into<Bindable<'a>>>(
        &self,
        device: &wgpu::Device,
        grid: [u32; 3],
        range: impl Fn(Slot) -> B,
    ) -> (wgpu::ComputePipeline, wgpu::BindGroup, [u32; 3]) {
        let ranges: Vec<(Slot, Bindable<'_>)> =
            self.module.slots.iter().map(|&slot| (slot, range(slot).into())).collect();
        let entries: Vec<_> =
            ranges.iter().map(|(slot, range)| range.entry(*slot as u32)).collect();
        let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&format!("wgpu-attention {}", self.module.name)),
            layout: &self.layout,
            entries: &entries,
        });
        (self.pipeline.clone(), bind_group, grid)
    }
}
