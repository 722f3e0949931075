//! What is asked for.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use wgpu_attention::{CacheShape, Element, Pairing, Rotary};

/// Generates tokens with a stack of attention layers over paged caches.
///
/// Queries, keys and values are drawn from normal(0, 1) in place of a model's projections. A step is
/// one append (keys and queries turned by rotary embedding) and one attention a layer, recorded into
/// one encoder and submitted once; all is planned and bound before the first. A step's time is from
/// writing its rows to the end of the GPU's work.
///
/// The last step's outputs, of all layers, are compared with the definition in f64 over f32 keys and
/// values: f32 caches must be within 1e-5 of it, row by row, others within a relative RMS error of
/// 1e-3 (f16), 1e-2 (bf16), 2e-2 (int8).
///
/// Exit code: 0 if all went well, 1 if not, with the reason.
#[derive(Parser)]
pub struct Args {
    /// Query heads [default: 32; 4 with --check]
    #[arg(long, value_name = "H", value_parser = at_least_1())]
    heads: Option<u32>,
    /// Heads of keys and values [default: 8; 2 with --check]
    #[arg(long, value_name = "H", value_parser = at_least_1())]
    kv_heads: Option<u32>,
    /// Head dimension
    #[arg(long, value_name = "D", default_value_t = 64, value_parser = at_least_1())]
    dim: u32,
    /// Layers, each with a cache of its own
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = at_least_1())]
    layers: u32,
    /// Tokens of the prompt [default: 512; 24 with --check]
    #[arg(long, value_name = "N")]
    prefill: Option<u32>,
    /// Tokens generated [default: 1000; 40 with --check]
    #[arg(long, value_name = "N", value_parser = at_least_1())]
    steps: Option<u32>,
    /// Tokens of a page
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = at_least_1())]
    page: u32,
    /// Storage types of the caches: f32, f16, bf16, int8, several with commas between, or all
    #[arg(long = "type", value_name = "TYPE", default_value = "all")]
    pub types: Types,
    /// A picture of milliseconds per step over the cached tokens, SVG or PNG by the file's name
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// A small stack, the prompt and every step compared with the definition; int8 caches must take
    /// at most 0.28 of f32's bytes
    #[arg(long)]
    pub check: bool,
}

fn at_least_1() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

/// A stack of layers and what it is to do.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub heads: u32,
    pub kv_heads: u32,
    pub dim: u32,
    pub layers: u32,
    pub prefill: u32,
    pub steps: u32,
    pub page: u32,
}

impl Args {
    pub fn sizes(&self) -> Sizes {
        let usual = |given: Option<u32>, usual, small| {
            given.unwrap_or(if self.check { small } else { usual })
        };
        Sizes {
            heads: usual(self.heads, 32, 4),
            kv_heads: usual(self.kv_heads, 8, 2),
            dim: self.dim,
            layers: self.layers,
            prefill: usual(self.prefill, 512, 24),
            steps: usual(self.steps, 1000, 40),
            page: self.page,
        }
    }
}

impl Sizes {
    /// One layer's cache: all that is ever appended fits.
    pub fn cache(&self, element: Element) -> CacheShape {
        let capacity = self.prefill.saturating_add(self.steps);
        let shape = CacheShape::new(1, self.kv_heads, capacity, self.dim).element(element);
        shape.paged(self.page, capacity.div_ceil(self.page))
    }

    /// All of a row turns.
    pub fn rotary(&self) -> Rotary {
        let positions = self.prefill.saturating_add(self.steps);
        Rotary::new(self.dim / 2, positions, Pairing::Halves)
    }
}

/// Storage types, each once.
#[derive(Clone)]
pub struct Types(pub Vec<Element>);

const ALL: [Element; 4] = [Element::F32, Element::F16, Element::Bf16, Element::Int8];

pub fn name(element: Element) -> String {
    format!("{element:?}").to_lowercase()
}

impl FromStr for Types {
    type Err = String;

    fn from_str(text: &str) -> Result<Types, String> {
        if text == "all" {
            return Ok(Types(ALL.to_vec()));
        }
        let mut types = Vec::new();
        for part in text.split(',') {
            let element = ALL.into_iter().find(|&element| name(element) == part);
            let element =
                element.ok_or(format!("{part:?} is none of f32, f16, bf16, int8, all"))?;
            if !types.contains(&element) {
                types.push(element);
            }
        }
        Ok(Types(types))
    }
}
