//! The words a problem is described with.

/// Sizes of one attention call. Token counts are capacities, see
/// [`Bound::set_lengths`](crate::Bound::set_lengths).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Independent sequences.
    pub batch: u32,
    /// Heads of Q and O.
    pub q_heads: u32,
    /// Heads of K and V; divides `q_heads`. Query head h reads head h / (q_heads / kv_heads).
    pub kv_heads: u32,
    /// Query tokens.
    pub q_len: u32,
    /// Key tokens.
    pub kv_len: u32,
    /// Elements of a row of Q and K.
    pub head_dim: u32,
    /// Elements of a row of V and O.
    pub value_dim: u32,
}

impl Shape {
    /// Every token attends to every token: one head size, as many keys as queries.
    pub const fn self_attention(batch: u32, heads: u32, tokens: u32, head_dim: u32) -> Shape {
        Shape {
            batch,
            q_heads: heads,
            kv_heads: heads,
            q_len: tokens,
            kv_len: tokens,
            head_dim,
            value_dim: head_dim,
        }
    }

    /// The same with fewer heads of K and V (grouped-query attention).
    #[must_use]
    pub const fn kv_heads(self, kv_heads: u32) -> Shape {
        Shape { kv_heads, ..self }
    }

    /// The same with another number of key tokens (cross-attention, a cache).
    #[must_use]
    pub const fn kv_len(self, kv_len: u32) -> Shape {
        Shape { kv_len, ..self }
    }

    /// The same with another row length of V and O.
    #[must_use]
    pub const fn value_dim(self, value_dim: u32) -> Shape {
        Shape { value_dim, ..self }
    }
}

/// How query positions map to key positions: query i stands at key position i + shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Align {
    /// shift 0: the first query stands at the first key.
    TopLeft,
    /// shift kv_len - q_len: the last query stands at the last key. May be negative.
    BottomRight,
    /// An explicit shift, for instance the number of cached keys.
    Shift(i32),
}

/// Which keys a query may see around its own position p = i + shift:
/// p - left <= j <= p + right. A bound left out is open; both are inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Band {
    /// Keys before the query's position.
    pub left: Option<u32>,
    /// Keys after the query's position.
    pub right: Option<u32>,
}

impl Band {
    /// No key after the query's position.
    pub const CAUSAL: Band = Band { left: None, right: Some(0) };

    pub(crate) fn is_open(&self) -> bool {
        self.left.is_none() && self.right.is_none()
    }
}

/// How a number is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Element {
    /// IEEE 754 binary32.
    #[default]
    F32,
    /// IEEE 754 binary16. Two in a u32 word of a GPU buffer, the first in the low half.
    F16,
    /// bfloat16: the upper half of a binary32. Packed likewise.
    Bf16,
    /// A signed byte times an f32 that a whole row shares. Only in a [`KvCache`](crate::KvCache).
    Int8,
}

impl Element {
    /// Bytes of one number.
    pub const fn bytes(self) -> u32 {
        match self {
            Element::F32 => 4,
            Element::F16 | Element::Bf16 => 2,
            Element::Int8 => 1,
        }
    }
}

/// Operands that share a storage type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Q and O.
    Queries,
    /// K and V.
    Keys,
}

/// What to compute besides O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Outputs {
    /// The logarithm of each row's softmax denominator.
    pub lse: bool,
    /// The final scores. q_len * kv_len numbers a head.
    pub scores: bool,
    /// The softmax weights. q_len * kv_len numbers a head.
    pub weights: bool,
}
