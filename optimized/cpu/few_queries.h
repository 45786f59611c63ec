// Choice of the kernel for blocks of few queries (few_queries-inl.h).
#pragma once

#include "optimized/cpu/block_kernel.h"

namespace ringlab::cpu {

/// The most queries of a head for which a tile is not faster; measured, see docs/performance.md.
inline constexpr std::int64_t kMostFewQueries = 8;

/// True for a block of few queries without modifiers or a bit matrix, which need tiles.
template <class Element>
bool has_few_queries(const Block<Element>& block) {
  return block.q.extents.tokens <= kMostFewQueries && block.is_plain() && !block.mask.has_bits();
}

}  // namespace ringlab::cpu
