// The shape of one block of a ring, as kernels for GPUs take it.
#pragma once

#include <cstdint>

#include "optimized/cuda/attention_call.h"
#include "reference/core/problem.h"

namespace ringlab::cuda {

/// `queries` and `keys`: rows of one rank and of one chunk.
inline BlockShape block_shape(const Shape& s, std::int64_t queries, std::int64_t keys) {
  const auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  return {.batch = narrow(s.batch),
          .q_heads = narrow(s.q_heads),
          .kv_heads = narrow(s.kv_heads),
          .queries = narrow(queries),
          .keys = narrow(keys),
          .head_dim = narrow(s.head_dim),
          .v_dim = narrow(s.v_dim)};
}

}  // namespace ringlab::cuda
