// Cutting tensors into the ranks' shards, and putting the shards of a result together.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reference/core/error.h"
#include "reference/core/layout.h"
#include "reference/core/tensor.h"

namespace ringlab {

/// The tokens at `positions`, dense, converted to T. `source` may be strided.
template <class T, class From>
Tensor<T> shard_of(const TensorView<From>& source, const Positions& positions) {
  const std::vector<std::int64_t> tokens = positions.to_list();
  Extents extents = source.extents;
  extents.tokens = positions.size();
  Tensor<T> shard(extents);
  T* next = shard.values().data();
  for_each_row(extents, [&](auto b, auto h, auto t) {
    next = copy_row(source, b, h, tokens[static_cast<std::size_t>(t)], next);
  });
  return shard;
}

/// Writes a shard back to the tokens it came from, converted to T.
template <class T, class From>
void unshard(const Tensor<From>& shard, const Positions& positions, Tensor<T>& whole) {
  const std::vector<std::int64_t> tokens = positions.to_list();
  const TensorView<const From> rows = shard.view();
  const TensorView<T> to = whole.view();
  for_each_row(rows.extents, [&](auto b, auto h, auto t) {
    copy_row(rows, b, h, t, to.data + to.offset(b, h, tokens[static_cast<std::size_t>(t)], 0));
  });
}

/// Rows first … first+count-1 of one head of a dense tensor, as one piece of memory. `head` counts
/// over the batch. Usage error when the tensor has no such rows.
template <class T>
std::span<T> rows_of(const TensorView<T>& tensor, std::int64_t head, std::int64_t first,
                     std::int64_t count) {
  const Extents& e = tensor.extents;
  if (first < 0 || count < 0 || first > e.tokens - count || head >= e.batch * e.heads) {
    throw_usage_error({.where = "rows_of",
                       .expected = "rows of a tensor with " + std::to_string(e.tokens) + " tokens",
                       .actual = std::to_string(count) + " rows from " + std::to_string(first)});
  }
  return {tensor.data + (head * e.tokens + first) * e.channels,
          static_cast<std::size_t>(count * e.channels)};
}

}  // namespace ringlab
