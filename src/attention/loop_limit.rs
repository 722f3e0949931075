//! Drivers that end loops early.

use crate::Attention;

/// How many loop iterations one invocation may make in all, nested loops included.
///
/// Mesa's llvmpipe before version 23 ends every loop silently once an invocation has made 65,535
/// iterations, and results are wrong without any error. Where a limit holds, the planner splits
/// the keys over workgroups and merges the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoopLimit {
    /// From what the device says of its adapter and driver.
    #[default]
    Auto,
    /// No limit. Wrong results on the drivers above.
    Unlimited,
    /// This many iterations.
    Iterations(u32),
}

impl LoopLimit {
    pub(super) fn resolve(self, info: &wgpu::AdapterInfo) -> Option<u32> {
        match self {
            LoopLimit::Unlimited => None,
            LoopLimit::Iterations(most) => Some(most),
            LoopLimit::Auto => {
                // "Mesa 22.3.6 (LLVM ..)" on Vulkan, "4.5 (Core Profile) Mesa 22.3.6" on GL
                let version = info.driver_info.split("Mesa ").nth(1).unwrap_or("");
                let major = version.split('.').next().and_then(|n| n.parse::<u32>().ok());
                let old = info.name.starts_with("llvmpipe") && major.is_none_or(|major| major < 23);
                old.then_some(65_535)
            }
        }
    }
}

impl Attention {
    /// The same, with the same pipelines, for a driver with this limit: see
    /// [`Options::loop_limit`](crate::Options::loop_limit).
    #[must_use]
    pub fn with_loop_limit(self, limit: LoopLimit) -> Attention {
        let loop_limit = limit.resolve(&self.device().adapter_info());
        Attention { loop_limit, ..self }
    }

    pub(crate) fn loop_limit(&self) -> Option<u32> {
        self.loop_limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_llvmpipe_is_known() {
        let mut info = wgpu::AdapterInfo::new(wgpu::DeviceType::Cpu, wgpu::Backend::Vulkan);
        let mut limit = |name: &str, driver_info: &str| {
            (info.name, info.driver_info) = (name.into(), driver_info.into());
            LoopLimit::Auto.resolve(&info)
        };
        assert_eq!(
            limit("llvmpipe (LLVM 15.0.6, 256 bits)", "Mesa 22.3.6 (LLVM 15.0.6)"),
            Some(65_535)
        );
        assert_eq!(limit("llvmpipe (LLVM 19.1.7, 256 bits)", "Mesa 25.0.7 (LLVM 19.1.7)"), None);
        assert_eq!(limit("llvmpipe", "4.5 (Core Profile) Mesa 25.0.7"), None);
        assert_eq!(limit("llvmpipe", "something new"), Some(65_535));
        assert_eq!(limit("AMD Radeon", "Mesa 22.3.6"), None);
    }
}
