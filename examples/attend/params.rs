//! What a problem is besides its tensors: from a file's metadata, and what flags put in its place.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use wgpu_attention::{Align, Band, Problem};

/// Options of the file's metadata that a flag replaces.
#[derive(Args, Clone, Copy, Default)]
#[command(next_help_heading = "Options in place of the file's params")]
pub struct Flags {
    /// Factor on q . k; 1/sqrt(dim) if neither says
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    scale: Option<f32>,
    /// s = X tanh(s / X), before slopes and mask; 0: none
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    softcap: Option<f32>,
    /// Which keys a query may see, by its position among them
    #[arg(long, value_name = "HOW")]
    causal: Option<Causal>,
    /// Query i stands at key i + N, whatever --causal says
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    shift: Option<i32>,
    /// At most N keys before the query's position; -1: any
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = bound)]
    window_left: Option<Bound>,
    /// At most N keys after the query's position; -1: any
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = bound)]
    window_right: Option<Bound>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum Causal {
    /// All; the first query stands at the first key
    None,
    /// None after its position; the first query stands at the first key
    #[value(alias = "top_left")]
    TopLeft,
    /// None after its position; the last query stands at the last key
    #[value(alias = "bottom_right")]
    BottomRight,
}

/// A side of the window; `None` is open.
type Bound = Option<u32>;

/// A file's `params`.
#[derive(Debug, Default)]
pub struct Params {
    scale: Option<f32>,
    softcap: f32,
    causal: Option<Causal>,
    shift: Option<i32>,
    left: Bound,
    right: Bound,
    /// Tensors that must be there.
    pub announced: Vec<&'static str>,
}

/// Tensors that are in use if they are there; `params` may say so by their names.
pub const OPTIONAL: [&str; 7] =
    ["mask", "alibi_slopes", "sinks", "kv_lens", "q_lens", "cu_seqlens_q", "cu_seqlens_kv"];

impl Params {
    /// From JSON; null is all defaults.
    pub fn from_json(params: Value) -> Result<Params, String> {
        match params {
            Value::Null => Ok(Params::default()),
            Value::Object(all) => Params::from_map(&all).map_err(|why| format!("params: {why}")),
            _ => Err("params: need a JSON object".into()),
        }
    }

    fn from_map(all: &Map<String, Value>) -> Result<Params, String> {
        let mut params = Params::default();
        for (name, value) in all {
            let refused = |need: &str| format!("{name}: need {need}, got {value}");
            let number = || value.as_f64().map(|x| x as f32).ok_or_else(|| refused("a number"));
            let side = || value.as_i64().and_then(from_minus_one).ok_or_else(|| refused(SIDE));
            match name.as_str() {
                _ if value.is_null() => {}
                "scale" => params.scale = Some(number()?),
                "softcap" => params.softcap = number()?,
                "causal" => {
                    let text = value.as_str().map(|text| Causal::from_str(text, false));
                    let need = "none, top_left or bottom_right";
                    params.causal = Some(text.and_then(Result::ok).ok_or_else(|| refused(need))?);
                }
                "shift" => {
                    let shift = value.as_i64().and_then(|n| i32::try_from(n).ok());
                    let need = "a whole number from -2^31 to 2^31 - 1";
                    params.shift = Some(shift.ok_or_else(|| refused(need))?);
                }
                "window_left" => params.left = side()?,
                "window_right" => params.right = side()?,
                name => match (optional(name), value) {
                    (Some(tensor), Value::Bool(true)) => params.announced.push(tensor),
                    // What is off changes nothing; what is on and unknown would.
                    (_, Value::Bool(false)) => {}
                    (Some(_), _) => return Err(refused("true or false")),
                    (None, _) => return Err(format!("{name}: not an option of this tool")),
                },
            }
        }
        Ok(params)
    }

    /// The same with what flags say instead. An alignment given by `--causal` replaces the file's
    /// shift too.
    pub fn with(self, flags: Flags) -> Params {
        let aligned = matches!(flags.causal, Some(Causal::TopLeft | Causal::BottomRight));
        Params {
            scale: flags.scale.or(self.scale),
            softcap: flags.softcap.unwrap_or(self.softcap),
            causal: flags.causal.or(self.causal),
            shift: flags.shift.or(self.shift.filter(|_| !aligned)),
            left: flags.window_left.unwrap_or(self.left),
            right: flags.window_right.unwrap_or(self.right),
            announced: self.announced,
        }
    }

    /// The problem with these options.
    pub fn on(&self, problem: Problem) -> Problem {
        let causal = self.causal.unwrap_or(Causal::None);
        let align = match (self.shift, causal) {
            (Some(shift), _) => Align::Shift(shift),
            (None, Causal::BottomRight) => Align::BottomRight,
            (None, Causal::None | Causal::TopLeft) => Align::TopLeft,
        };
        let right = if causal == Causal::None { self.right } else { Some(0) };
        let band = Band { left: self.left, right };
        let problem = problem.softcap(self.softcap).align(align).band(band);
        match self.scale {
            Some(scale) => problem.scale(scale),
            None => problem,
        }
    }
}

/// The tensor that an option announces.
fn optional(name: &str) -> Option<&'static str> {
    let name = if name == "alibi" { "alibi_slopes" } else { name };
    OPTIONAL.into_iter().find(|&tensor| tensor == name)
}

const SIDE: &str = "a whole number from -1 (open) to 2^32 - 1";

fn from_minus_one(n: i64) -> Option<Bound> {
    match n {
        -1 => Some(None),
        _ => u32::try_from(n).ok().map(Some),
    }
}

fn bound(text: &str) -> Result<Bound, String> {
    let side = text.parse().ok().and_then(from_minus_one);
    side.ok_or_else(|| format!("need {SIDE}"))
}
