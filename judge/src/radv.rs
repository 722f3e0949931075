//! Mesa's RADV compiles for a card that is not there: `RADV_FORCE_FAMILY` names one, and the driver's
//! statistics and machine code are read back through VK_KHR_pipeline_executable_properties.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};

use ash::{khr, vk};
use wgpu::naga;

/// A pretended card.
pub struct Card {
    device: ash::Device,
    executables: khr::pipeline_executable_properties::Device,
    /// Driver and version.
    pub driver: String,
    /// Vector registers of 64 lanes that the waves of a SIMD share.
    pub registers: u64,
    /// Rows of the matrices it multiplies, f16 in and f32 out.
    pub matrix_rows: Option<u32>,
    // Closes the library when dropped.
    _entry: ash::Entry,
}

/// What the compiler says of a module, by its own names, and the machine code.
pub struct Compiled {
    statistics: BTreeMap<String, u64>,
    pub assembly: String,
}

impl Compiled {
    /// A statistic that every Mesa since 22 has.
    pub fn get(&self, name: &str) -> Result<u64, String> {
        let known = || self.statistics.keys().cloned().collect::<Vec<_>>().join(", ");
        self.statistics.get(name).copied().ok_or_else(|| format!("no {name:?} among {}", known()))
    }
}

/// Families with 192 KiB of vector registers a SIMD; RDNA2 and the smaller RDNA3 have 128 KiB (Mesa,
/// ac_gpu_info.c).
const LARGE_FILES: [&str; 4] = ["NAVI31", "NAVI32", "GFX1100", "GFX1101"];

/// f16 in, f32 out, square, of a subgroup.
fn is_mixed(m: &vk::CooperativeMatrixPropertiesKHR<'_>) -> bool {
    let (half, single) = (vk::ComponentTypeKHR::FLOAT16, vk::ComponentTypeKHR::FLOAT32);
    let types = [m.a_type, m.b_type, m.c_type, m.result_type] == [half, half, single, single];
    types && m.m_size == m.n_size && m.n_size == m.k_size && m.scope == vk::ScopeKHR::SUBGROUP
}

fn text(chars: &[c_char]) -> String {
    // SAFETY: the specification has these arrays end in a zero.
    unsafe { CStr::from_ptr(chars.as_ptr()) }.to_string_lossy().into_owned()
}

impl Card {
    /// The card that the environment has made RADV believe in.
    pub fn open() -> Result<Card, String> {
        let failed = |what: &'static str| move |why: vk::Result| format!("{what}: {why}");
        // SAFETY: plain Vulkan calls in the order and with the structures that the specification asks
        // for; everything pointed to outlives its call.
        unsafe {
            let entry = ash::Entry::load().map_err(|why| format!("libvulkan.so.1: {why}"))?;
            let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
            let info = vk::InstanceCreateInfo::default().application_info(&application);
            let instance = entry.create_instance(&info, None).map_err(failed("instance"))?;
            let cards = instance.enumerate_physical_devices().map_err(failed("cards"))?;
            let card = *cards.first().ok_or("no card: is this RADV's ICD file?")?;
            let mut driver = vk::PhysicalDeviceDriverProperties::default();
            let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut driver);
            instance.get_physical_device_properties2(card, &mut properties);

            // Everything it has is enabled.
            let mut core11 = vk::PhysicalDeviceVulkan11Features::default();
            let mut core12 = vk::PhysicalDeviceVulkan12Features::default();
            let mut core13 = vk::PhysicalDeviceVulkan13Features::default();
            let mut statistics =
                vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default();
            let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
            let mut features = vk::PhysicalDeviceFeatures2::default()
                .push_next(&mut core11)
                .push_next(&mut core12)
                .push_next(&mut core13)
                .push_next(&mut statistics);
            let mut extensions = vec![khr::pipeline_executable_properties::NAME];
            let there = instance.enumerate_device_extension_properties(card);
            let there = there.map_err(failed("extensions"))?;
            let mut matrix_rows = None;
            let matrix = khr::cooperative_matrix::NAME;
            if there.iter().any(|one| one.extension_name_as_c_str() == Ok(matrix)) {
                extensions.push(matrix);
                features = features.push_next(&mut matrices);
                let asked = khr::cooperative_matrix::Instance::new(&entry, &instance);
                let sizes = asked.get_physical_device_cooperative_matrix_properties(card);
                let sizes = sizes.map_err(failed("sizes of matrices"))?;
                matrix_rows = sizes.iter().find(|size| is_mixed(size)).map(|size| size.m_size);
            }
            instance.get_physical_device_features2(card, &mut features);
            let extensions: Vec<_> = extensions.iter().map(|name| name.as_ptr()).collect();
            let queues = [vk::DeviceQueueCreateInfo::default()
                .queue_family_index(0)
                .queue_priorities(&[1.0])];
            let info = vk::DeviceCreateInfo::default()
                .queue_create_infos(&queues)
                .enabled_extension_names(&extensions)
                .push_next(&mut features);
            let device = instance.create_device(card, &info, None).map_err(failed("device"))?;
            let executables = khr::pipeline_executable_properties::Device::new(&instance, &device);
            let driver = format!("{} {}", text(&driver.driver_name), text(&driver.driver_info));
            let family = std::env::var("RADV_FORCE_FAMILY").unwrap_or_default();
            let registers = if LARGE_FILES.contains(&&*family) { 768 } else { 512 };
            Ok(Card { device, executables, driver, registers, matrix_rows, _entry: entry })
        }
    }

    /// Compiles the one entry point of a module for subgroups of so many lanes, without runtime checks, as the
    /// library does.
    pub fn compile(&self, wgsl: &str, lanes: u32) -> Result<Compiled, String> {
        let module = naga::front::wgsl::parse_str(wgsl).map_err(|e| e.emit_to_string(wgsl))?;
        let all = naga::valid::Capabilities::all();
        let info = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), all)
            .validate(&module)
            .map_err(|e| e.emit_to_string(wgsl))?;
        let options = naga::back::spv::Options {
            lang_version: (1, 6),
            flags: naga::back::spv::WriterFlags::empty(),
            bounds_check_policies: naga::proc::BoundsCheckPolicies {
                index: naga::proc::BoundsCheckPolicy::Unchecked,
                buffer: naga::proc::BoundsCheckPolicy::Unchecked,
                image_load: naga::proc::BoundsCheckPolicy::Unchecked,
                binding_array: naga::proc::BoundsCheckPolicy::Unchecked,
            },
            zero_initialize_workgroup_memory:
                naga::back::spv::ZeroInitializeWorkgroupMemoryMode::None,
            force_loop_bounding: false,
            ..Default::default()
        };
        let words = naga::back::spv::write_vec(&module, &info, &options, None)
            .map_err(|why| why.to_string())?;
        let [entry] = &module.entry_points[..] else { return Err("not one entry point".into()) };
        self.pipeline(&words, &entry.name, &bindings(&module), lanes).map_err(|why| why.to_string())
    }

    fn pipeline(
        &self,
        words: &[u32],
        entry: &str,
        bindings: &[vk::DescriptorSetLayoutBinding<'_>],
        lanes: u32,
    ) -> Result<Compiled, vk::Result> {
        let name = CString::new(entry).unwrap_or_default();
        // SAFETY: as in `open`; nothing is destroyed, since the process ends after a few modules and
        // the pretended card promises nothing about it.
        unsafe {
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(bindings);
            let sets = [self.device.create_descriptor_set_layout(&info, None)?];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
            let layout = self.device.create_pipeline_layout(&info, None)?;
            let info = vk::ShaderModuleCreateInfo::default().code(words);
            let module = self.device.create_shader_module(&info, None)?;
            let mut size = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default()
                .required_subgroup_size(lanes);
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(&name)
                .push_next(&mut size);
            let info = vk::ComputePipelineCreateInfo::default()
                .flags(
                    vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR
                        | vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR,
                )
                .stage(stage)
                .layout(layout);
            let made =
                self.device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None);
            let pipeline = made.map_err(|(_, why)| why)?[0];
            let info = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline);
            let statistics = self.executables.get_pipeline_executable_statistics(&info)?;
            let statistics = statistics.iter().map(|s| (text(&s.name), s.value.u64)).collect();
            Ok(Compiled { statistics, assembly: self.assembly(&info)? })
        }
    }

    /// The last internal representation: the machine code.
    ///
    /// # Safety
    /// The pipeline was made with CAPTURE_INTERNAL_REPRESENTATIONS.
    unsafe fn assembly(
        &self,
        info: &vk::PipelineExecutableInfoKHR<'_>,
    ) -> Result<String, vk::Result> {
        // SAFETY: the first call fills in sizes, the second text of those sizes.
        unsafe {
            let mut all =
                self.executables.get_pipeline_executable_internal_representations(info)?;
            let mut texts: Vec<Vec<u8>> = all.iter().map(|one| vec![0; one.data_size]).collect();
            for (one, text) in all.iter_mut().zip(&mut texts) {
                one.p_data = text.as_mut_ptr().cast();
            }
            let mut count = all.len() as u32;
            let read = self.executables.fp().get_pipeline_executable_internal_representations_khr;
            read(self.device.handle(), info, &mut count, all.as_mut_ptr()).result()?;
            let last = texts.pop().unwrap_or_default();
            Ok(String::from_utf8_lossy(&last).trim_end_matches('\0').to_string())
        }
    }
}

/// The bindings of group 0, the only one.
fn bindings(module: &naga::Module) -> Vec<vk::DescriptorSetLayoutBinding<'static>> {
    let globals = module.global_variables.iter();
    let bound = globals.filter_map(|(_, global)| global.binding.map(|at| (global, at.binding)));
    bound
        .map(|(global, number)| {
            let kind = match global.space {
                naga::AddressSpace::Uniform => vk::DescriptorType::UNIFORM_BUFFER,
                naga::AddressSpace::Handle => vk::DescriptorType::STORAGE_IMAGE,
                _ => vk::DescriptorType::STORAGE_BUFFER,
            };
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(kind)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        })
        .collect()
}
