//! What the numbers were measured on and with.

use wgpu_attention::Gpu;

use crate::python::Python;

/// Cores that this process may use: the threads of every peer on the CPU.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

pub fn print(gpu: &Gpu, python: Option<&Python>, markdown: bool) {
    let info = gpu.device().adapter_info();
    let mut lines = vec![
        format!("Adapter: {}, {} {} {}", info.name, info.backend, info.driver, info.driver_info),
        format!("CPU: {}, {} threads", cpu().unwrap_or("unknown".into()), threads()),
        format!("wgpu-attention {}, wgpu {}", version("wgpu-attention"), version("wgpu")),
    ];
    #[cfg(feature = "candle")]
    lines.push(format!("candle {}", version("candle-core")));
    #[cfg(feature = "burn")]
    lines.push(format!("burn {}, cubecl {}", version("burn"), version("cubecl")));
    lines.extend(python.map(|python| python.notes.clone()).unwrap_or_default());
    for line in lines {
        println!("{}{line}", if markdown { "- " } else { "" });
    }
}

/// The locked version of a crate.
fn version(name: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let entry = lock.split("[[package]]").find(|entry| {
        entry.lines().any(|line| line.strip_prefix("name = ") == Some(&format!("\"{name}\"")))
    });
    let version = entry.and_then(|entry| {
        entry.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
    });
    version.unwrap_or("of no known version")
}

/// Where the system says so in a file.
fn cpu() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().into())
}
