// The sizes of one kernel call, and which rows a block of threads works on.
#pragma once

#include <algorithm>
#include <cstdint>

#include "stages/common/rank_problem.h"

namespace ringlab::stages {

/// The query rows of one block: rows first … first+rows-1 of one head, thread t has first + t.
struct RowTile {
  std::int64_t head = 0;  ///< counted over the batch: b · q_heads + h
  std::int64_t first = 0;
  std::int64_t rows = 0;
};

/// `queries` rows of this rank against `keys` keys, for every head of every batch entry.
struct KernelShape {
  std::int64_t heads = 0;  ///< batch · q_heads
  std::int64_t group = 1;  ///< query heads that share a K/V head; head / group counts those
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t head_dim = 1;
  std::int64_t v_dim = 1;
  double scale = 1;

  std::int64_t blocks(std::int64_t threads) const {
    return heads * ((queries + threads - 1) / threads);
  }
  RINGLAB_HD RowTile row_tile(std::int64_t block, int threads) const {
    const std::int64_t tiles = (queries + threads - 1) / threads;
    const std::int64_t head = block / tiles, first = block % tiles * threads;
    const std::int64_t left = queries - first;
    return {head, first, left < threads ? left : threads};
  }
};

template <class Element>
KernelShape kernel_shape(const RankProblem<Element>& r, std::int64_t keys) {
  const Shape& s = r.problem.shape;
  return {.heads = s.batch * s.q_heads,
          .group = s.q_heads / s.kv_heads,
          .queries = r.q.extents.tokens,
          .keys = keys,
          .head_dim = s.head_dim,
          .v_dim = s.v_dim,
          .scale = r.problem.scale};
}

}  // namespace ringlab::stages
