//! Every mistake a caller can make, as a value.

use crate::{Element, Method, Operand};

/// What was wrong, what was needed and what was given.
///
/// Nothing is recorded, written or submitted when a call returns an error, and the next
/// correct call on the same objects works.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A size, or a product of sizes and strides, outside what can be addressed.
    Size {
        /// The number in question, for instance `head_dim`.
        what: &'static str,
        /// The rule it breaks.
        need: &'static str,
        /// The value given.
        got: u128,
    },
    /// `kv_heads` does not divide `q_heads`.
    HeadGroups {
        /// Query heads given.
        q_heads: u32,
        /// Key and value heads given.
        kv_heads: u32,
    },
    /// A band or ALiBi without saying how query and key positions align.
    Align {
        /// Query tokens.
        q_len: u32,
        /// Key tokens.
        kv_len: u32,
    },
    /// A number that is not finite or has the wrong sign.
    Value {
        /// `scale`, `softcap`, `slopes`, `sinks` or `shift`.
        what: &'static str,
        /// The rule it breaks.
        need: &'static str,
        /// The value given.
        got: f32,
    },
    /// A storage type that the operand cannot have.
    Element {
        /// The operand.
        operand: Operand,
        /// The rule it breaks.
        need: &'static str,
        /// The type given.
        got: Element,
    },
    /// A layout that the operand cannot have.
    Stride {
        /// The operand.
        operand: Operand,
        /// The rule it breaks.
        need: &'static str,
        /// The stride given, in elements.
        got: u32,
    },
    /// A shape of a bias or mask that does not broadcast to `[batch, q_heads, q_len, kv_len]`.
    Broadcast {
        /// The operand.
        operand: Operand,
        /// The shape it must broadcast to.
        need: [u32; 4],
        /// The shape given.
        got: Vec<u32>,
    },
    /// A slice or buffer that is too short, or, for a host slice without a layout of its own,
    /// of another length than the shape says.
    Length {
        /// The operand.
        operand: Operand,
        /// Elements needed (bytes for working memory).
        need: u64,
        /// Elements given (bytes for working memory).
        got: u64,
    },
    /// An operand that the problem needs was not given.
    Missing {
        /// The operand.
        operand: Operand,
    },
    /// An operand was given that the problem does not have, or a layout to one that has none.
    Unexpected {
        /// The operand.
        operand: Operand,
    },
    /// A buffer made without a usage that the kernels need.
    Usage {
        /// The operand.
        operand: Operand,
        /// Usages needed.
        need: wgpu::BufferUsages,
        /// Usages the buffer was made with.
        got: wgpu::BufferUsages,
    },
    /// Two operands share memory, and one of them is written.
    Overlap {
        /// The written operand.
        operand: Operand,
        /// The other one.
        other: Operand,
        /// How to make it legal.
        need: &'static str,
    },
    /// The device's limits do not allow it.
    Limit {
        /// The limit, by its name in [`wgpu::Limits`] where it has one.
        what: &'static str,
        /// What the call needs: bytes for memory and operands, else a number.
        need: u64,
        /// What the device allows.
        got: u64,
    },
    /// A method that [`Options::without`](crate::Options::without) excludes, asked for by hand, or
    /// without another one that computes the problem.
    Excluded {
        /// The method.
        method: Method,
    },
    /// A cache without room for more. Nothing has changed.
    Full {
        /// What ran out: tokens of a sequence, or pages.
        what: &'static str,
        /// How many the call needs.
        need: u64,
        /// How many there are: of tokens in all, of pages those that are free.
        got: u64,
    },
    /// A file that could not be written. The system's own words.
    File(String),
    /// No adapter, or no device from it. The text says what to install.
    NoAdapter(String),
    /// The device is lost or destroyed.
    DeviceLost(String),
    /// wgpu refused something that this crate could not check beforehand, for instance a
    /// buffer of another device, or memory ran out. wgpu's own words.
    Device(String),
}

/// The limits that are not in bytes, besides what a device has or has not: of that 1 is needed, 0 there.
const COUNTED: [&str; 13] = [
    "max_compute_workgroup_size_x",
    "max_compute_invocations_per_workgroup",
    "max_storage_buffers_per_shader_stage",
    "max_uniform_buffers_per_shader_stage",
    "max_bindings_per_bind_group",
    "max_bind_groups",
    "max_texture_dimension_2d",
    "max_storage_textures_per_shader_stage",
    "workgroups",
    "value_dim of the fused kernel",
    "loop iterations of one invocation",
    "head_dim",
    "value_dim",
];

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Size { what, need, got } => write!(f, "{what}: need {need}, got {got}"),
            Error::HeadGroups { q_heads, kv_heads } => {
                write!(f, "q_heads: need a multiple of kv_heads = {kv_heads}, got {q_heads}")
            }
            Error::Align { q_len, kv_len } => write!(
                f,
                "align: need an explicit alignment for a band or ALiBi, unless q_len is kv_len and \
                 sequences have no lengths of their own, got none with q_len = {q_len}, \
                 kv_len = {kv_len}"
            ),
            Error::Value { what, need, got } => write!(f, "{what}: need {need}, got {got}"),
            Error::Element { operand, need, got } => {
                write!(f, "{operand}: need {need}, got {got:?}")
            }
            Error::Stride { operand, need, got } => {
                write!(f, "{operand} layout: need {need}, got {got}")
            }
            Error::Broadcast { operand, need, got } => {
                write!(f, "{operand} shape: need one that broadcasts to {need:?}, got {got:?}")
            }
            Error::Length { operand, need, got } => {
                let unit = if operand.is_working_memory() { "bytes" } else { "elements" };
                write!(f, "{operand}: need {need} {unit}, got {got}")
            }
            Error::Missing { operand } => write!(f, "{operand}: needed by this problem, not given"),
            Error::Unexpected { operand } => {
                write!(f, "{operand}: given, but this problem has none")
            }
            Error::Usage { operand, need, got } => {
                write!(f, "{operand} buffer: need usage {need:?}, got {got:?}")
            }
            Error::Overlap { operand, other, need } => {
                write!(f, "{operand} shares memory with {other}: need {need}")
            }
            Error::Limit { what, need: 1, got: 0 } => write!(f, "{what}: not on this device"),
            Error::Limit { what, need, got } => {
                let unit = if COUNTED.contains(what) { "" } else { " bytes" };
                write!(f, "{what}: need {need}{unit}, the device allows {got}")
            }
            Error::Full { what, need, got } => {
                write!(f, "cache is full: need {need} {what}, got {got}")
            }
            Error::Excluded { method } => {
                write!(f, "{method:?}: excluded by the options, and nothing else was allowed")
            }
            Error::File(why) => write!(f, "file: {why}"),
            Error::NoAdapter(why) => write!(f, "no usable GPU adapter: {why}"),
            Error::DeviceLost(why) => write!(f, "device lost: {why}"),
            Error::Device(why) => write!(f, "wgpu: {why}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_is_in_bytes() {
        for (what, need, text) in [
            ("scratch", 512, "scratch: need 512 bytes, the device allows 0"),
            ("the feature PIPELINE_CACHE", 1, "the feature PIPELINE_CACHE: not on this device"),
            ("head_dim", 132, "head_dim: need 132, the device allows 0"),
        ] {
            assert_eq!(Error::Limit { what, need, got: 0 }.to_string(), text);
        }
    }
}
