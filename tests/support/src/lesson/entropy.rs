//! How widely weights are spread.

/// -sum p ln p, in nats: 0 if one key gets all, ln n if n keys get the same.
pub fn entropy(weights: &[f32]) -> f64 {
    let terms = weights.iter().map(|&p| f64::from(p)).filter(|&p| p > 0.0).map(|p| p * p.ln());
    -terms.sum::<f64>()
}
