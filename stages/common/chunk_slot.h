// A place for one K/V chunk on its way round the ring.
#pragma once

#include <algorithm>
#include <span>

#include "stages/common/rank_problem.h"

namespace ringlab::stages {

/// Message tags.
inline constexpr int kKeys = 0, kValues = 1, kPositions = 2, kKeyGradients = 3, kValueGradients = 4;

/// A slot as large as the largest chunk, zeros at first; holds the chunk of `owner`, dense (batch,
/// kv_heads, keys of the owner, channels). T is the problem's element, or the type of sums.
template <class T>
struct ChunkSlot {
  int owner = 0;
  MeteredBuffer<T> k, v;

  template <class Element>
  explicit ChunkSlot(RankProblem<Element>& r)
      : k(r.memory, per_key(r.k) * r.kv_layout.largest_chunk()),
        v(r.memory, per_key(r.v) * r.kv_layout.largest_chunk()) {}

  /// Copies this rank's own chunk in.
  void fill_with_own(const RankProblem<T>& r) {
    owner = r.rank();
    std::copy_n(r.k.data, r.k.extents.size(), k.data());
    std::copy_n(r.v.data, r.v.extents.size(), v.data());
  }
  std::int64_t bytes() const { return k.bytes() + v.bytes(); }

  /// The part of the buffer that the owner's chunk takes, for sending and receiving.
  template <class Element>
  std::span<std::byte> k_bytes(const RankProblem<Element>& r) {
    return writable_bytes_of(k.data(), per_key(r.k) * keys(r));
  }
  template <class Element>
  std::span<std::byte> v_bytes(const RankProblem<Element>& r) {
    return writable_bytes_of(v.data(), per_key(r.v) * keys(r));
  }
  /// The same parts as elements, for computing on.
  std::span<const T> k_values(const RankProblem<T>& r) const {
    return {k.data(), static_cast<std::size_t>(per_key(r.k) * keys(r))};
  }
  std::span<const T> v_values(const RankProblem<T>& r) const {
    return {v.data(), static_cast<std::size_t>(per_key(r.v) * keys(r))};
  }

 private:
  template <class Element>
  static std::int64_t per_key(const TensorView<const Element>& shard) {
    return shard.extents.batch * shard.extents.heads * shard.extents.channels;
  }
  template <class Element>
  std::int64_t keys(const RankProblem<Element>& r) const {
    return r.kv_layout.positions(owner).size();
  }
};

}  // namespace ringlab::stages
