//! The tensors of a call, by name.

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
    /// A [`KvCache`](crate::KvCache).
    Cache,
    /// Queries turned by their positions, `[batch, q_heads, q_len, head_dim]`.
    Rotated,
    /// Cosines and sines of a [`Rotary`](crate::Rotary), f32 `[position, pair, 2]`.
    Rotary,
    /// Partial outputs to be merged, `[part, batch, q_heads, q_len, value_dim]`.
    Parts,
    /// Their LSE, f32 `[part, batch, q_heads, q_len]`.
    PartsLse,
}

impl Operand {
    /// Every operand of every kind of call, in the order of declaration. Later versions may have
    /// more.
    pub const ALL: &'static [Operand] = &[
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
        Operand::Cache,
        Operand::Rotated,
        Operand::Rotary,
        Operand::Parts,
        Operand::PartsLse,
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
            Operand::Cache => "cache",
            Operand::Rotated => "rotated",
            Operand::Rotary => "rotary",
            Operand::Parts => "parts",
            Operand::PartsLse => "parts_lse",
        }
    }

    pub(crate) const fn is_written(self) -> bool {
        use Operand::{Arena, Lse, O, Rotated, Scores, Weights, Y};
        matches!(self, O | Lse | Scores | Weights | Arena | Y | Rotated)
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
