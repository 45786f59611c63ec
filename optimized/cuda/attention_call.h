// A call of a kernel on a device: the queries of one rank against one K/V chunk.
//
// Masks come as intervals. A query sees one interval of the chunk's rows, whose positions increase,
// under every mask but a bit matrix; kernels therefore know neither masks nor positions nor layouts
// (visible_keys.h makes the intervals). All pointers are device pointers, aligned to 16 bytes.
#pragma once

#include <cstdint>

#include "reference/core/dtype.h"
#include "reference/core/state.h"

namespace ringlab::cuda {

/// Rows first … last - 1 of a chunk; empty when last <= first.
struct KeyRange {
  std::int32_t first = 0;
  std::int32_t last = 0;
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

/// The keys that a tile of queries sees: no row sees anything outside `any`, every row all of
/// `all`.
struct TileKeys {
  KeyRange any;
  KeyRange all;
};

/// full: every row of a tile of queries sees every key of a block; partial: not so. Kernels have a
/// loop of their own for full blocks, without comparisons.
enum class BlockCoverage { full, partial };

/// Sizes. Query head h reads K/V head h / (q_heads / kv_heads); tensors are dense (batch, heads,
/// rows, channels). Rows are fewer than 2^31, offsets may be more.
struct BlockShape {
  std::int32_t batch = 1;
  std::int32_t q_heads = 1;
  std::int32_t kv_heads = 1;
  std::int32_t queries = 0;
  std::int32_t keys = 0;
  std::int32_t head_dim = 0;
  std::int32_t v_dim = 0;
};

/// The keys that each row sees.
struct BlockMask {
  const KeyRange* rows = nullptr;   ///< (queries)
  const TileKeys* tiles = nullptr;  ///< (ceil(queries / tile_queries of the kernel))
  /// Every query sees every key, as in `rows` and `tiles`: tells the choice of a kernel.
  bool hides_nothing = false;
  const KeyRange* host_rows = nullptr;  ///< `rows` in the host's memory, for vendors' kernels
};

/// Running states that come in and go out, so that the hops of a ring need no merge pass. Maxima
/// are in base 2: log2 e times scores. accs are not divided by the row sums.
struct RunningState {
  SoftmaxState<float>* states = nullptr;  ///< (batch, q_heads, queries)
  float* accs = nullptr;                  ///< (batch, q_heads, queries, v_dim)
};

/// The forward pass. It begins with the states in memory or, if `begins`, with empty ones (memory
/// is then not read). It leaves states in memory or, if `finishes`, writes `out` in the problem's
/// type and `lse` (natural) instead; rows that saw nothing get 0 and -inf.
template <class Element>
struct ForwardCall {
  BlockShape shape;
  const Element* q = nullptr;
  const Element* k = nullptr;
  const Element* v = nullptr;
  BlockMask mask;
  float scale = 1;  ///< times log2 e: exponents are in base 2
  bool begins = true;
  bool finishes = true;
  RunningState running;
  Element* out = nullptr;
  float* lse = nullptr;
};

/// Finished gradients, in the problem's type.
template <class Element>
struct GradientResults {
  Element* dq = nullptr;
  Element* dk = nullptr;
  Element* dv = nullptr;
};

/// The backward pass: adds to dq, dk and dv, in f32, without the factor `scale` of dq and dk.
/// `lse` (natural) and `delta`, Σ_c dout out, are over the whole sequence. `deterministic`:
/// the same bits from run to run, more slowly.
template <class Element>
struct BackwardCall {
  BlockShape shape;
  const Element* q = nullptr;
  const Element* k = nullptr;
  const Element* v = nullptr;
  const Element* dout = nullptr;
  const float* lse = nullptr;
  const float* delta = nullptr;
  BlockMask mask;
  float scale = 1;  ///< times log2 e
  bool deterministic = false;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  const Element* out = nullptr;        ///< of the whole sequence, for kernels that take no `delta`
  GradientResults<Element> results{};  ///< null unless the pass has no other block
};

}  // namespace ringlab::cuda
