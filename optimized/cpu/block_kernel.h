// Block kernels on the CPU: the queries of one rank against one K/V chunk.
//
// Vectors with their lanes along queries (forward_tile-inl.h, backward_tile-inl.h), as wide as the
// processor has them (vectors.h). No sum depends on the width of the vectors, so the bits do not,
// except that the scalar kernels have no fused multiply-add, and that processors which multiply
// bf16 do so in both passes (bf16_dot.h), but for few queries (few_queries.h). Accuracy:
// kernel_profile.h.
#pragma once

#include <cstdint>

#include "optimized/cpu/work_done.h"
#include "reference/core/dtype.h"
#include "reference/core/mask.h"
#include "reference/core/modifiers.h"
#include "reference/core/positions.h"
#include "reference/core/state.h"
#include "reference/core/tensor.h"

namespace ringlab::cpu {

/// Queries that share a block of keys, and keys of a block; both at least 1.
struct TileSizes {
  std::int64_t queries = 32;
  std::int64_t keys = 32;
};

/// One block: the tokens of its rows, and what they may see of each other. All tensors are dense
/// (batch, heads, rows, channels); query head h reads K/V head h / (q_heads / kv_heads).
template <class Element>
struct Block {
  const Mask& mask;
  const Positions& queries;  ///< global position of each row of q
  const Positions& keys;     ///< of each row of k and v
  double scale = 1;
  TileSizes tiles;
  TensorView<const Element> q, k, v;
  int threads = 1;  ///< that share the work; results have the same bits for any number
  WorkDone done = {};
  /// Kernels ignore sinks, which are states that rows begin with. `mask` must be bound to the
  /// lengths of the whole sequences; all batches and heads must be present.
  const Modifiers* modifiers = nullptr;

  /// True when no modifier changes scores or weights.
  bool is_plain() const {
    return !modifiers || !(modifiers->changes_scores() || modifiers->dropout != 0);
  }
};

/// Takes the block into the running states: `states` (batch, q_heads, queries) and `accs` (…,
/// v_dim), not divided by the row sums (FlashAttention, Dao et al. 2022, Alg. 1). Maxima are in
/// base 2: log2 e times scores, see natural_state() in base_2.h. One rescale per key block at most.
/// Sums in f32 (f64 for f64), in the order of channels and keys; exp2 within 1.75 ulp. Rows that
/// see nothing of the block keep their state; masked keys and values are not used, whatever they
/// hold. About 0.2 MiB of scratch per thread; where few queries share a K/V head, memory for their
/// scores of a block of keys.
template <class Element>
void forward_block(const Block<Element>& block, SoftmaxState<Accumulator<Element>>* states,
                   Accumulator<Element>* accs);

/// Number of key blocks that forward_block makes of a chunk with these positions, which do not
/// cross runs, and the most rescales of a row.
std::int64_t key_blocks(const Positions& keys, std::int64_t tile_keys);

/// The queries' side of the backward pass: gradient of the output, log-sum-exp of the rows, and
/// delta_i = Σ_c dout_ic out_ic, all over the whole sequence.
template <class Element>
struct QueryGradients {
  TensorView<const Element> dout;               ///< (batch, q_heads, queries, v_dim)
  const Accumulator<Element>* lse = nullptr;    ///< (batch, q_heads, queries), natural
  const Accumulator<Element>* delta = nullptr;  ///< the same
};

/// Adds the block's part to dq (batch, q_heads, queries, head_dim), dk (batch, kv_heads, keys,
/// head_dim) and dv (…, v_dim). dq and dk lack the factor `scale`: it is applied once, at the end.
/// P is recomputed from lse; dS = P · (dP - delta) (FlashAttention, Alg. 4), with modifiers as
/// reference/core/modifiers.h says.
template <class Element>
struct BlockGradients {
  Accumulator<Element>* dq = nullptr;
  Accumulator<Element>* dk = nullptr;
  Accumulator<Element>* dv = nullptr;
};
template <class Element>
void backward_block(const Block<Element>& block, const QueryGradients<Element>& given,
                    const BlockGradients<Element>& sums);

}  // namespace ringlab::cpu
