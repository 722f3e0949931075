//! How numbers are written: as the lesson writes them.

/// Two decimals; "-" for what is hidden, -inf.
pub fn decimals(x: f32) -> String {
    match format!("{x:.2}") {
        text if text == "-0.00" => "0.00".into(),
        _ if x == f32::NEG_INFINITY => "-".into(),
        text => text,
    }
}

pub fn percent(weight: f32) -> String {
    format!("{:.0}%", 100.0 * weight)
}

pub fn vector(numbers: &[f32]) -> String {
    let numbers: Vec<_> = numbers.iter().map(|&x| decimals(x)).collect();
    format!("({})", numbers.join(", "))
}

/// A bar of up to this many characters, drawn in eighths of one.
pub fn bar(share: f32, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * 8.0 * width as f32).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + part
}
