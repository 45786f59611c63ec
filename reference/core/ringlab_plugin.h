// The C interface through which `ringlab verify ./libmine.so` calls anybody's attention.
//
// A plugin is a shared library that exports one function, `ringlab_plugin_v1`. It returns a
// description: what the kernel can do, the arithmetic it promises, and a function that computes.
// Plain C99 (and C++), no other header, nothing to link. docs/plugins.md begins with an example.
//
// Compatibility: ringlab_plugin and ringlab_call start with their size and version, and only ever
// grow at the end; the structures inside them keep their size, and what is reserved is zero. Zero
// always means "as if the field were not there": fill structures by name and leave the rest.
//
// Ownership: whoever allocates keeps. What a call is given is valid during that call and no
// longer; inputs are read-only memory; no two arrays of a call, and no two elements of one, share
// memory; what the description points to must live as long as the library is loaded. Nothing may be
// thrown or jumped out of a call.
#ifndef RINGLAB_PLUGIN_H_
#define RINGLAB_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): names as C has them

#define RINGLAB_PLUGIN_VERSION 1

#if defined(_WIN32)
#define RINGLAB_PLUGIN_EXPORT __declspec(dllexport)
#else
#define RINGLAB_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/// Element types: the values of ringlab_tensor::dtype, and the index of ringlab_plugin::numerics.
/// f16 is IEEE binary16, bf16 the upper half of a binary32.
enum { RINGLAB_F64 = 0, RINGLAB_F32 = 1, RINGLAB_F16 = 2, RINGLAB_BF16 = 3 };
#define RINGLAB_DTYPES 4
/// The bit of a dtype in ringlab_abilities::dtypes: RINGLAB_DTYPE_BIT(RINGLAB_F32).
#define RINGLAB_DTYPE_BIT(dtype) (1u << (dtype))

/// Terms of a mask: bits of ringlab_mask::kinds, all of which a key has to pass, and bits of
/// ringlab_abilities::masks. Query i stands at key position p = i + kv_tokens - q_tokens.
enum {
  RINGLAB_MASK_CAUSAL = 1,     ///< j <= p
  RINGLAB_MASK_WINDOW = 2,     ///< p - window_left <= j <= p + window_right
  RINGLAB_MASK_DOCUMENTS = 4,  ///< j and p in the same document; p < 0 sees nothing
  RINGLAB_MASK_PREFIX = 8,     ///< j < prefix_tokens, or j <= p
  RINGLAB_MASK_BYTES = 16,     ///< only `bytes` says it; as an ability: any mask, read from `bytes`
  /// Abilities only. Several of the kinds above at a time.
  RINGLAB_MASK_INTERSECTIONS = 32,
  /// Any mask but a matrix, read from `visible_begin` and `visible_end`.
  RINGLAB_MASK_INTERVALS = 64
};

/// Return values of ringlab_plugin::run.
enum {
  RINGLAB_OK = 0,
  RINGLAB_UNSUPPORTED = 1  ///< cannot compute this call: no verdict. Other values: the call failed
};

/// (batch, heads, tokens, channels), strides in elements. The strides of inputs are dense,
/// channels innermost, unless ringlab_abilities::strided_inputs is set; then they may have any
/// sign, order and size: an offset need not fit 32 bits, and between the elements need not be
/// memory. Outputs are always dense, and their first element is aligned to 64 bytes, as
/// that of dense inputs is. `data` is the element (0, 0, 0, 0).
typedef struct ringlab_tensor {
  void* data;         ///< inputs: read-only memory
  int32_t dtype;      ///< RINGLAB_F64 …
  int32_t reserved;   ///< 0
  int64_t extents[4]; /* batch, heads, tokens, channels */
  int64_t strides[4];
} ringlab_tensor;

/// The keys that a query may see, in several forms; read the one that suits.
typedef struct ringlab_mask {
  uint32_t kinds;            ///< RINGLAB_MASK_CAUSAL …; 0: every query sees every key
  uint32_t reserved;         ///< 0
  int64_t window_left;       ///< INT64_MAX: no limit
  int64_t window_right;      ///< INT64_MAX: no limit
  int64_t prefix_tokens;     ///< of RINGLAB_MASK_PREFIX
  int64_t documents;         ///< of RINGLAB_MASK_DOCUMENTS: how many, none of them empty
  const int64_t* starts;     ///< (documents + 1): document d is [starts[d], starts[d + 1])
  const int64_t* positions;  ///< (q_tokens): the key position p that each query stands at
  /// (q_tokens): query i sees keys [visible_begin[i], visible_end[i]), and of them only those that
  /// `bytes` allows where kinds has RINGLAB_MASK_BYTES. Equal where it sees none.
  const int64_t* visible_begin;
  const int64_t* visible_end;
  /// (q_tokens, kv_tokens), 1: visible. For plugins with the ability RINGLAB_MASK_BYTES, and then
  /// for every mask but 0; else NULL.
  const uint8_t* bytes;
  const void* reserved_forms[4];  ///< NULL
} ringlab_mask;

/// Modifiers of scores and weights besides scale and mask: bits of ringlab_modifiers::kinds, and
/// of ringlab_abilities::modifiers. With query i at key position p (see the masks), in this order:
///   s_ij = scale · q_i·k_j
///   s_ij = softcap · tanh(s_ij / softcap)           RINGLAB_MODIFIER_SOFTCAP
///   s_ij = s_ij - alibi_slopes[h] · |p - j|         RINGLAB_MODIFIER_ALIBI, h: the query head
///   the mask
///   lse_i = log(e^{sinks[h]} + Σ_j e^{s_ij})        RINGLAB_MODIFIER_SINKS
///   o_i   = Σ_j f_ij e^{s_ij - lse_i} v_j           RINGLAB_MODIFIER_DROPOUT, f_ij is 0 where the
///                                                   pair is dropped, else dropout_factor
/// Dropout leaves the lse alone. A query that sees no key but has a sink gets o = 0 and
/// lse = sinks[h].
enum {
  RINGLAB_MODIFIER_SOFTCAP = 1,
  RINGLAB_MODIFIER_ALIBI = 2,
  RINGLAB_MODIFIER_SINKS = 4,
  RINGLAB_MODIFIER_DROPOUT = 8
};

/// The modifiers of a call. Numbers are doubles: round each of them once to the type computed in.
/// Gradients are those of q, k and v; that of the sinks is not asked for.
typedef struct ringlab_modifiers {
  uint32_t kinds;  ///< RINGLAB_MODIFIER_SOFTCAP …, several at a time
  /// dropout · 2^32, rounded: what the words of our generator are compared with.
  uint32_t dropout_threshold;
  double softcap;              ///< 0: none
  const double* alibi_slopes;  ///< (q_heads); NULL: none
  const double* sinks;         ///< (q_heads); NULL: none
  double dropout;              ///< probability of dropping a pair; 0: none
  double dropout_factor;       ///< 1 / (1 - dropout) of the pairs that are kept; 1: none
  /// The seed of the function of batch, query head, i and j by which pairs are kept
  /// (reference/core/modifiers.h). Kernels with another generator read `kept`.
  uint64_t dropout_seed;
  /// (batch, q_heads, q_tokens, kv_tokens), 1: the pair is kept; NULL: all pairs are.
  const uint8_t* kept;
  const void* reserved[4];  ///< NULL
} ringlab_modifiers;

/// Layouts of the tokens over the ranks, for plugins that set ringlab_abilities::ranks.
enum { RINGLAB_CONTIGUOUS = 0, RINGLAB_ZIGZAG = 1, RINGLAB_STRIPED = 2 };

/// One attention: o = softmax(scale · q kᵀ, masked) v; lse_i = log Σ_j exp(scale · q_i·k_j), the
/// natural logarithm; both modified as `modifiers` says. A query that sees no key gets o = 0 and
/// lse = -inf. Query head h reads K/V head h / (q_heads / kv_heads). Every element of every output
/// has to be written.
typedef struct ringlab_call {
  uint32_t struct_size;  ///< sizeof(ringlab_call) of the caller
  uint32_t version;      ///< RINGLAB_PLUGIN_VERSION of the caller
  ringlab_tensor q;      ///< (batch, q_heads, q_tokens, head_dim)
  ringlab_tensor k;      ///< (batch, kv_heads, kv_tokens, head_dim)
  ringlab_tensor v;      ///< (batch, kv_heads, kv_tokens, v_dim)
  ringlab_tensor o;      ///< out: (batch, q_heads, q_tokens, v_dim), of the dtype of q
  ringlab_tensor lse;    ///< out: (batch, q_heads, q_tokens, 1), f32, or f64 where q is. data is
                         ///< NULL without ringlab_abilities::lse
  ringlab_tensor dout;   ///< gradient of a loss by o; data is NULL where no gradients are wanted,
                         ///< and else dq, dk and dv are wanted, too
  ringlab_tensor dq;     ///< out, in the extents and the dtype of q
  ringlab_tensor dk;     ///< out, of k; summed over the query heads of a group
  ringlab_tensor dv;     ///< out, of v
  double scale;          ///< multiplies q kᵀ
  ringlab_mask mask;
  int32_t threads;       ///< to compute with, at least 1
  int32_t ranks;         ///< at least 1; 1 without ringlab_abilities::ranks
  int32_t layout;        ///< RINGLAB_CONTIGUOUS …
  int32_t reserved;      ///< 0
  int64_t tile_queries;  ///< a wish for the rows of a tile, at least 1
  int64_t tile_keys;
  /// Room for the reason of a call that fails: zero-terminated text, at most message_size bytes.
  char* message;
  size_t message_size;
  // Members that calls did not have from the start (RINGLAB_CALL_HAS):
  ringlab_modifiers modifiers;  ///< kinds is 0 without ringlab_abilities::modifiers
} ringlab_call;

/// True when the caller knows a member that calls did not have from the start: `modifiers`. One
/// that does not know it has no such wishes either.
#define RINGLAB_CALL_HAS(call, member) \
  ((call)->struct_size >= offsetof(ringlab_call, member) + sizeof((call)->member))

/// Abilities of the kernel. All zero: f32 would still have to be named in `dtypes`; equal heads and
/// lengths, no mask, no modifiers, forward only. An ability that is not claimed is not tested, and
/// the verdict says so.
typedef struct ringlab_abilities {
  uint32_t dtypes;            ///< RINGLAB_DTYPE_BIT(…) of every type it takes
  uint32_t masks;             ///< RINGLAB_MASK_…; no mask at all is always asked for
  int32_t lse;                ///< writes the lse; else that is not checked
  int32_t backward;           ///< writes dq, dk and dv
  int32_t grouped_heads;      ///< more query heads than K/V heads
  int32_t rectangular;        ///< q_tokens other than kv_tokens
  int32_t other_v_dim;        ///< v_dim other than head_dim
  int32_t no_tokens;          ///< extents of zero
  int32_t empty_rows;         ///< queries that see no key get 0 and -inf
  int32_t any_scale;          ///< else 1 / sqrt(head_dim) only
  int32_t strided_inputs;     ///< honours the strides of q, k, v and dout
  int32_t deterministic;      ///< the same bits for the same call, always
  int32_t masked_may_be_nan;  ///< NaN or infinity where the mask hides it never shows
  /// Keys appended at the end leave every partial sum of the earlier ones as it was.
  int32_t sums_keys_in_order;
  /// A row has the same bits wherever it stands and whatever is computed beside it.
  int32_t same_bits_per_row;
  /// The row sum divides once, at the end. 0 where weights are divided before they meet V.
  int32_t divides_last;
  int32_t threads;            ///< honours ringlab_call::threads
  int32_t ranks;              ///< honours ringlab_call::ranks and layout
  int64_t max_head_dim;       ///< of v_dim, too; 0: any
  int64_t head_dim_multiple;  ///< of v_dim, too; 0: any
  uint32_t modifiers;  ///< RINGLAB_MODIFIER_… of every kind it takes, and any of them together
  uint32_t reserved_bits;  ///< 0
  int64_t reserved[7];     ///< 0
} ringlab_abilities;

/// The arithmetic that the kernel promises for inputs of one dtype, from which the error bound of
/// every element is computed (docs/numerics.md). Unit roundoffs are 2^-p for p significant bits:
/// f32 2^-24, f16 2^-11, bf16 2^-8. 0 is the default in brackets, that of a careful kernel, which
/// computes f64 in f64 and all others in f32. A promise that is too good fails; one that is too
/// weak hides mistakes, and the report shows the bounds.
typedef struct ringlab_numerics {
  double u_accumulate;   ///< of q·k, P·V and the row sum [2^-24, f64: 2^-53]
  double u_work;         ///< of scaling, subtracting, rescaling and dividing [u_accumulate]
  double exp_error;      ///< relative error of exp; add a unit roundoff where weights are divided
                         ///< before they meet V [4 u_accumulate]
  double u_probability;  ///< of a type that weights are rounded to before they meet V [exact]
  double u_row_sum;      ///< u_probability again, where the row sum adds the rounded ones [exact]
  double p_underflow;    ///< half the least subnormal of that type [0]
  double u_partial;      ///< of a type that partial outputs are stored in between tiles [exact]
  double u_query;        ///< of a type that scale · q is rounded to before it meets k [exact]
  double u_lse;          ///< of the lse [that of its type]
  /// Keys between two rescales of what is summed up: the tile of an online softmax [1]. Set it to
  /// a number beyond any sequence for a kernel that finds the maximum first.
  int64_t keys_per_rescale;
  /// Longest chain of additions that a term of a sum goes through [as many as there are keys].
  int64_t accumulation_chain;
  int64_t lse_merges;        ///< how often (o, lse) pairs of parts are merged [0]
  double exp_underflow;      ///< absolute error of an exp that underflows [2^-126, f64: 2^-1022]
  double product_underflow;  ///< of a product that does [2^-149, f64: 2^-1074]; 2^-126 when flushed
  /// dk and dv are rounded to their dtype, and added to again, once in so many queries of a query
  /// head; dq once in so many keys [0: rounded once, when complete].
  int64_t queries_per_store;
  int64_t keys_per_store;
  double u_product;  ///< of a type that factors of matrix products are rounded to: TF32 2^-11, with
                     ///< the exponents of f32 [exact]
  double reserved[5];  ///< 0
} ringlab_numerics;

/// The description of a plugin, which `ringlab_plugin_v1` returns.
typedef struct ringlab_plugin {
  uint32_t struct_size;  ///< sizeof(ringlab_plugin)
  uint32_t version;      ///< RINGLAB_PLUGIN_VERSION
  const char* name;      ///< "flash1"
  const char* title;     ///< one line on what it is
  ringlab_abilities can;
  ringlab_numerics numerics[RINGLAB_DTYPES];  ///< by dtype; those it does not take are not read
  void* context;                              ///< handed to `run`
  /// Computes one attention; RINGLAB_OK, RINGLAB_UNSUPPORTED or a number of its own. Never called
  /// by two threads at a time.
  int32_t (*run)(const ringlab_call* call, void* context);
} ringlab_plugin;

/// The symbol that a plugin exports. Called once, before anything else.
RINGLAB_PLUGIN_EXPORT const ringlab_plugin* ringlab_plugin_v1(void);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif /* RINGLAB_PLUGIN_H_ */
