//! The colour map: from dark to light in equal steps for the eye, through changing hues.

/// Colours there are. The last is a weight of 1.
pub const STEPS: usize = 256;

pub type Rgb = [u8; 3];

/// Which colour a weight has: by its square root, so that small weights can be told apart.
pub fn step(weight: f64) -> usize {
    (weight.clamp(0.0, 1.0).sqrt() * (STEPS - 1) as f64).round() as usize
}

/// All colours, from weight 0 to weight 1.
pub fn map() -> Vec<Rgb> {
    (0..STEPS).map(|step| at(step as f64 / (STEPS - 1) as f64)).collect()
}

/// Lightness rises evenly in OKLab (Ottosson, 2020), while the hue turns from blue over red to
/// yellow.
fn at(x: f64) -> Rgb {
    let lightness = 0.18 + 0.78 * x;
    let chroma = 0.08 + 0.10 * (std::f64::consts::PI * x).sin() + 0.03 * x;
    let hue = (280.0 + 188.0 * x).to_radians();
    let (a, b) = (chroma * hue.cos(), chroma * hue.sin());
    let l = (lightness + 0.3963377774 * a + 0.2158037573 * b).powi(3);
    let m = (lightness - 0.1055613458 * a - 0.0638541728 * b).powi(3);
    let s = (lightness - 0.0894841775 * a - 1.2914855480 * b).powi(3);
    let linear = [
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
    ];
    linear.map(|x| {
        let x = x.clamp(0.0, 1.0);
        let x = if x <= 0.0031308 { 12.92 * x } else { 1.055 * x.powf(1.0 / 2.4) - 0.055 };
        (255.0 * x).round() as u8
    })
}
