//! What is known of the adapter, the device, and the machine.

use super::card::Card;

pub type Fact = (String, String);

pub fn is_software(adapter: &wgpu::Adapter) -> bool {
    adapter.get_info().device_type == wgpu::DeviceType::Cpu
}

pub fn all(adapter: &wgpu::Adapter, card: &Card) -> Vec<Fact> {
    let info = adapter.get_info();
    let limits = card.device.limits();
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let matrices: Vec<String> = card
        .matrices
        .iter()
        .map(|p| {
            let [m, n, k] = [p.m_size, p.n_size, p.k_size];
            format!("{m} x {n} x {k} {:?} into {:?}", p.ab_type, p.cr_type)
        })
        .collect();
    let none = |text: String| if text.is_empty() { "none".into() } else { text };
    let threads = std::thread::available_parallelism().map_or(0, usize::from);
    [
        ("adapter", info.name),
        ("kind", format!("{:?}, {:?}", info.device_type, info.backend)),
        ("driver", format!("{} {}", info.driver, info.driver_info)),
        ("vendor and device", format!("{:#06x} {:#06x}", info.vendor, info.device)),
        ("subgroups", format!("{} to {}", info.subgroup_min_size, info.subgroup_max_size)),
        ("features enabled", none(card.device.features().to_string())),
        ("cooperative matrices", none(matrices.join("; "))),
        ("workgroup memory", format!("{} B", limits.max_compute_workgroup_storage_size)),
        ("invocations a workgroup", limits.max_compute_invocations_per_workgroup.to_string()),
        ("largest binding", mib(limits.max_storage_buffer_binding_size)),
        ("largest buffer", mib(limits.max_buffer_size)),
        (
            "machine",
            format!("{} {}, {threads} threads", std::env::consts::OS, std::env::consts::ARCH),
        ),
        ("wgpu-attention", env!("CARGO_PKG_VERSION").into()),
    ]
    .map(|(name, value)| (name.to_string(), value.trim().to_string()))
    .into()
}
