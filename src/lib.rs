//! Attention on every GPU that [wgpu](https://docs.rs/wgpu) reaches, recorded into your own
//! command encoder and proven against a CPU reference.
//!
//! # The computation
//!
//! Each token has a query, a key and a value. For query i and every key j
//!
//! ```text
//! s_ij = scale * q_i . k_j              how well key j answers query i
//! p_ij = exp(s_ij) / sum_j exp(s_ij)    the softmax: weights that sum to 1
//! o_i  = sum_j p_ij v_j                 the values, mixed by weight
//! ```
//!
//! with scale 1/sqrt(head_dim), so that scores keep a spread near 1. n tokens have n * n scores:
//! doubling the tokens quadruples the work. The staged kernels store the scores; the fused one
//! never does, so its memory grows with n only.
//!
//! [`Problem`] says what to compute, [`cpu::attention`] is what that means, in f64.
//!
#![cfg_attr(feature = "host", doc = "```")]
#![cfg_attr(not(feature = "host"), doc = "```ignore")]
//! use wgpu_attention::{Gpu, Inputs, Problem, Shape, cpu};
//! # fn main() -> Result<(), wgpu_attention::Error> {
//! // One sequence, 2 heads, 16 tokens of 32 numbers each.
//! let problem = Problem::new(Shape::self_attention(1, 2, 16, 32)).causal();
//! let x: Vec<f32> = (0..2 * 16 * 32).map(|i| (i as f32).sin()).collect();
//! let gpu = Gpu::new()?.attention(&problem, Inputs::new(&x, &x, &x))?;
//! let cpu = cpu::attention(&problem, Inputs::new(&x, &x, &x))?;
//! approx::assert_abs_diff_eq!(gpu.o.as_slice(), cpu.o.as_slice(), epsilon = 1e-5);
//! # Ok(()) }
//! ```
//!
//! # Inside your own program
//!
//! [`Attention`] (one per device) turns a [`Problem`] into a [`Plan`]; a plan and [`Buffers`] make
//! a [`Bound`]; [`Bound::encode`] records it into your compute pass. Everything is checked before
//! recording: `encode` cannot fail. Outside `Gpu`, which is for programs without a device, and the
//! `Tuner`, this crate makes no device, submits nothing, polls nothing and maps nothing of yours.
//!
//! # Glossary
//!
//! | word | meaning |
//! |---|---|
//! | q, k, v, o | queries, keys, values, output: `[batch, head, token, dim]` |
//! | s, p | score, weight |
//! | m, l | running maximum and running sum of a row's softmax |
//! | i, j | query token, key token |
//! | b, h, d | batch entry, head, dim |
//! | kv head | a head of K and V; several query heads may share one (grouped heads) |
//! | LSE | natural logarithm of the sum of exp(s) over a row's allowed keys |
//! | bias | a number added to each score; -inf excludes the key |
//! | mask | true: the query may attend to the key |
//! | slope | ALiBi: how much a score falls with each token of distance |
//! | sink | a logit that joins a head's softmax and has no value |
//! | packed | sequences one after another, told apart by their bounds (cu_seqlens) |
//! | band | which keys a query may see around its own position; causal: none after it |
//! | softcap | s = c tanh(s / c): keeps scores within -c .. c |
//! | quad | four consecutive elements of a row |
//! | tile | the queries and keys that a workgroup handles at a time |
//! | split | a constant number of keys handled by one workgroup, merged with the others' at the end |
//! | part | O and LSE over some of the keys, to be merged with those over the others |
//! | staged, fused | three kernels with stored scores; one kernel with an online softmax |
//! | arena | one buffer that holds all operands |
//! | class | problems that the same kernel suits best |
//! | cache | rows of K and V of many sequences, kept on the device |
//! | page | a number of tokens' rows in a cache, given to a sequence as it grows |
//! | pool | all of a cache's rows |
//! | rotary | turns pairs of elements of queries and keys by their positions |

#![deny(missing_docs)]
#![forbid(unsafe_op_in_unsafe_fn)]

mod attention;
mod bind;
mod buffers;
mod cache;
pub mod cpu;
mod describe;
mod error;
#[cfg(feature = "host")]
mod host;
mod kernel;
mod merge;
mod multi_head;
mod plan;
mod problem;
mod project;
mod rotary;
mod scope;
mod tensors;
mod texture;
mod uniform;

pub use attention::{Attention, Choice, LoopLimit, Method, Options};
#[cfg(not(target_family = "wasm"))]
pub use attention::{Class, Tuning};
pub use bind::Bound;
pub use buffers::Buffers;
pub use cache::{
    Append, AppendBound, AppendPlan, CacheShape, KvCache, Paging, Pool, Unpack, UnpackBound,
};
pub use describe::{Description, Dispatch};
pub use error::Error;
/// The version of `half` whose numbers host calls take.
pub use half;
#[cfg(all(feature = "host", not(target_family = "wasm")))]
pub use host::{Candidate, Loaded, Outcome, PipelineFile, Progress, Tuned, Tuner, TunerSettings};
#[cfg(feature = "host")]
pub use host::{Gpu, SelfTest, Verdict};
pub use kernel::Tile;
pub use merge::{Merge, MergeBound, MergePlan};
pub use multi_head::{MultiHead, MultiHeadBound, MultiHeadPlan};
pub use plan::Plan;
pub use problem::{
    Align, Band, BiasLayout, Element, Group, Layout, Operand, Outputs, Problem, Shape,
};
pub use project::{Projection, ProjectionBound, ProjectionPlan, Rows};
pub use rotary::{Pairing, Rotary};
pub use tensors::{
    Extras, Inputs, LayerInputs, LayerOutput, MergeInputs, Output, ProjectionInputs, Scalar,
};
/// The version of wgpu whose devices and buffers this crate takes.
pub use wgpu;

#[cfg(all(doctest, feature = "host"))]
#[doc = include_str!("../README.md")]
struct Readme;
