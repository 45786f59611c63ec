// Whether a block has so few queries that a kernel of their own takes it (few_queries-inl.h).
#pragma once

#include "optimized/cpu/block_kernel.h"

namespace ringlab::cpu {

/// The most queries of a head for which a tile is not faster; measured, see docs/performance.md.
inline constexpr std::int64_t kMostFewQueries = 8;

/// Whether a block has few queries, and nothing that tiles alone can do.
template <class Element>
bool has_few_queries(const Block<Element>& block) {
  return block.q.extents.tokens <= kMostFewQueries && block.is_plain() && !block.mask.has_bits();
}

}  // namespace ringlab::cpu
