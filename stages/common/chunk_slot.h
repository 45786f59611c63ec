// A place for one K/V chunk on its way round the ring.
#pragma once

#include <algorithm>
#include <span>

#include "stages/common/rank_problem.h"

namespace ringlab::stages {

/// As large as the largest chunk; holds the chunk of `owner`, dense (batch, kv_heads, keys of the
/// owner, channels).
template <class Element>
struct ChunkSlot {
  int owner = 0;
  MeteredBuffer<Element> k, v;

  explicit ChunkSlot(RankProblem<Element>& r)
      : k(r.memory, values_per_key(r.k) * r.kv_layout.largest_chunk()),
        v(r.memory, values_per_key(r.v) * r.kv_layout.largest_chunk()) {}

  /// Copies this rank's own chunk in.
  void fill_with_own(const RankProblem<Element>& r) {
    owner = r.rank();
    std::copy_n(r.k.data, r.k.extents.size(), k.data());
    std::copy_n(r.v.data, r.v.extents.size(), v.data());
  }

  /// The part of the buffer that the owner's chunk takes, for sending and receiving.
  std::span<std::byte> k_bytes(const RankProblem<Element>& r) {
    return writable_bytes_of(k.data(), values_per_key(r.k) * keys(r));
  }
  std::span<std::byte> v_bytes(const RankProblem<Element>& r) {
    return writable_bytes_of(v.data(), values_per_key(r.v) * keys(r));
  }
  /// The same parts, for computing on.
  std::span<const Element> k_values(const RankProblem<Element>& r) const {
    return {k.data(), static_cast<std::size_t>(values_per_key(r.k) * keys(r))};
  }
  std::span<const Element> v_values(const RankProblem<Element>& r) const {
    return {v.data(), static_cast<std::size_t>(values_per_key(r.v) * keys(r))};
  }

 private:
  static std::int64_t values_per_key(const TensorView<const Element>& shard) {
    return shard.extents.batch * shard.extents.heads * shard.extents.channels;
  }
  std::int64_t keys(const RankProblem<Element>& r) const {
    return r.kv_layout.positions(owner).size();
  }
};

}  // namespace ringlab::stages
