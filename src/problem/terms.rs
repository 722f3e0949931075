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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Element {
    /// IEEE 754 binary32.
    #[default]
    F32,
    /// IEEE 754 binary16. Two in a u32 word of a GPU buffer, the first in the low half.
    F16,
    /// bfloat16: the upper half of a binary32. Packed likewise.
    Bf16,
}

impl Element {
    /// Bytes of one number.
    pub const fn bytes(self) -> u32 {
        match self {
            Element::F32 => 4,
            Element::F16 | Element::Bf16 => 2,
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

/// One tensor of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Operand {
    /// Queries, `[batch, q_heads, q_len, head_dim]`.
    Q,
    /// Keys, `[batch, kv_heads, kv_len, head_dim]`.
    K,
    /// Values, `[batch, kv_heads, kv_len, value_dim]`.
    V,
    /// Output, `[batch, q_heads, q_len, value_dim]`.
    O,
    /// Additive bias, broadcast to `[batch, q_heads, q_len, kv_len]`. -inf excludes the key.
    Bias,
    /// Natural logarithm of the sum of exp(score), f32 `[batch, q_heads, q_len]`.
    Lse,
    /// Final scores, f32 `[batch, q_heads, q_len, kv_len]`, -inf where excluded.
    Scores,
    /// Softmax of the scores, f32 `[batch, q_heads, q_len, kv_len]`, 0 where excluded.
    Weights,
    /// The plan's working memory.
    Scratch,
    /// The one buffer that holds every other operand, see
    /// [`Problem::arena`](crate::Problem::arena).
    Arena,
    /// Tokens to be projected, `[token, input]`.
    X,
    /// Tokens that keys and values are made of in cross-attention, `[batch, kv_len, context_dim]`.
    Context,
    /// Weights of a projection, `[input, output]`.
    W,
    /// Bias of a projection, `[output]`.
    B,
    /// Added to a projection's result, `[token, output]`.
    Residual,
    /// Projected tokens, `[token, output]`.
    Y,
    /// Weights that make queries, `[d_model, q_heads * head_dim]`.
    Wq,
    /// Weights that make keys, `[context_dim, kv_heads * head_dim]`.
    Wk,
    /// Weights that make values, `[context_dim, kv_heads * value_dim]`.
    Wv,
    /// Weights that mix the heads, `[q_heads * value_dim, d_model]`.
    Wo,
    /// Bias of the queries, `[q_heads * head_dim]`.
    Bq,
    /// Bias of the keys, `[kv_heads * head_dim]`.
    Bk,
    /// Bias of the values, `[kv_heads * value_dim]`.
    Bv,
    /// Bias of the output, `[d_model]`.
    Bo,
    /// A multi-head plan's queries, keys and values: more of its working memory.
    Projected,
    /// Which keys may be attended to, broadcast to `[batch, q_heads, q_len, kv_len]`. Host: a bool
    /// each. GPU: bits in u32 words, key j is bit j % 32 of word j / 32, every row starts on a word.
    Mask,
    /// One u32 buffer that holds the small operands below, each where
    /// [`Problem::table`](crate::Problem::table) says.
    Tables,
    /// Queries that exist, u32 `[batch]`. In [`Operand::Tables`].
    QLens,
    /// Keys that exist, u32 `[batch]`. In [`Operand::Tables`].
    KvLens,
    /// Where each packed sequence's queries begin and the last one's end, u32 `[sequences + 1]`. In
    /// [`Operand::Tables`].
    CuSeqlensQ,
    /// The same for keys. In [`Operand::Tables`].
    CuSeqlensKv,
    /// ALiBi slopes, f32 `[q_heads]`. In [`Operand::Tables`].
    Slopes,
    /// Learned sink logits, f32 `[q_heads]`. In [`Operand::Tables`].
    Sinks,
}

impl Operand {
    /// All there are, in the order of their numbers.
    pub(crate) const ALL: [Operand; 33] = [
        Operand::Q,
        Operand::K,
        Operand::V,
        Operand::O,
        Operand::Bias,
        Operand::Lse,
        Operand::Scores,
        Operand::Weights,
        Operand::Scratch,
        Operand::Arena,
        Operand::X,
        Operand::Context,
        Operand::W,
        Operand::B,
        Operand::Residual,
        Operand::Y,
        Operand::Wq,
        Operand::Wk,
        Operand::Wv,
        Operand::Wo,
        Operand::Bq,
        Operand::Bk,
        Operand::Bv,
        Operand::Bo,
        Operand::Projected,
        Operand::Mask,
        Operand::Tables,
        Operand::QLens,
        Operand::KvLens,
        Operand::CuSeqlensQ,
        Operand::CuSeqlensKv,
        Operand::Slopes,
        Operand::Sinks,
    ];

    /// What [`Operand::Tables`] may hold, in this order.
    pub(crate) const TABLES: [Operand; 6] = [
        Operand::QLens,
        Operand::KvLens,
        Operand::CuSeqlensQ,
        Operand::CuSeqlensKv,
        Operand::Slopes,
        Operand::Sinks,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Operand::Q => "q",
            Operand::K => "k",
            Operand::V => "v",
            Operand::O => "o",
            Operand::Bias => "bias",
            Operand::Lse => "lse",
            Operand::Scores => "scores",
            Operand::Weights => "weights",
            Operand::Scratch => "scratch",
            Operand::Arena => "arena",
            Operand::X => "x",
            Operand::Context => "context",
            Operand::W => "w",
            Operand::B => "b",
            Operand::Residual => "residual",
            Operand::Y => "y",
            Operand::Wq => "w_q",
            Operand::Wk => "w_k",
            Operand::Wv => "w_v",
            Operand::Wo => "w_o",
            Operand::Bq => "b_q",
            Operand::Bk => "b_k",
            Operand::Bv => "b_v",
            Operand::Bo => "b_o",
            Operand::Projected => "projected",
            Operand::Mask => "mask",
            Operand::Tables => "tables",
            Operand::QLens => "q_lens",
            Operand::KvLens => "kv_lens",
            Operand::CuSeqlensQ => "cu_seqlens_q",
            Operand::CuSeqlensKv => "cu_seqlens_kv",
            Operand::Slopes => "slopes",
            Operand::Sinks => "sinks",
        }
    }

    pub(crate) const fn is_written(self) -> bool {
        use Operand::{Arena, Lse, O, Scores, Weights, Y};
        matches!(self, O | Lse | Scores | Weights | Arena | Y)
    }

    /// Sized in bytes, and of no meaning after the work.
    pub(crate) const fn is_working_memory(self) -> bool {
        matches!(self, Operand::Scratch | Operand::Projected)
    }
}

impl std::fmt::Display for Operand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
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
