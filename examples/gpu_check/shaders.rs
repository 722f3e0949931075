//! The kernels that measure peaks, each a whole file after a prologue.

/// `Number` is f32 or f16.
pub fn multiply_adds(halves: bool) -> String {
    let prologue = if halves { "enable f16;\nalias Number = f16;" } else { "alias Number = f32;" };
    format!("{prologue}\n{}", include_str!("../../benches/ceiling/multiply_adds.wgsl"))
}

/// Operations of a workgroup of it.
pub const MULTIPLY_ADDS: f64 = 64.0 * 2048.0 * 4.0 * 3.0 * 4.0 * 2.0;

pub fn bandwidth() -> String {
    include_str!("bandwidth.wgsl").into()
}

/// Bytes that a workgroup of it reads.
pub const BANDWIDTH: u64 = 256 * 32 * 16;

/// Matrices of `side` x `side`; sums are f32.
pub fn matrix(side: u32) -> String {
    let alias =
        |name, number, role| format!("alias {name} = coop_mat{side}x{side}<{number}, {role}>;\n");
    let types = [("Left", "f16", "A"), ("Right", "f16", "B"), ("Sum", "f32", "C")];
    let aliases: String = types.map(|(name, number, role)| alias(name, number, role)).concat();
    let enables = "enable f16;\nenable wgpu_cooperative_matrix;\n";
    format!("{enables}{aliases}const SIDE = {side}u;\n{}", include_str!("matrix.wgsl"))
}

/// Operations of a subgroup of it.
pub fn matrix_operations(side: u32) -> f64 {
    256.0 * 4.0 * 2.0 * f64::from(side).powi(3)
}
