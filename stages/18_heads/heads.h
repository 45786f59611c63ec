// Stage 18, heads: heads are dealt to the ranks; an all-to-all brings all their tokens together.
#pragma once

#include <vector>

#include "stages/13_pairwise_ring/pairwise_ring.h"
#include "stages/common/heads_problem.h"
#include "stages/common/parts.h"

namespace ringlab::stages::heads {

/// Message tags of the rows of q, k, v, out and lse.
inline constexpr int kQueryRows = 5, kKeyRows = 6, kValueRows = 7, kOutRows = 8, kLseRows = 9;

/// A shard in parts, for each rank its heads. K/V heads are dealt in order, and the query heads that
/// share one go with it. With fewer K/V heads than ranks some ranks have none.
template <class Element, class T>
std::vector<TensorView<T>> by_heads(const RankProblem<Element>& r, const TensorView<T>& shard) {
  // [lab: deal]
  const std::int64_t dealt = r.problem.shape.kv_heads, ranks = r.ranks();
  const std::int64_t group = shard.extents.heads / dealt;
  std::vector<TensorView<T>> parts;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    // [gap: deal]
    const std::int64_t first = dealt * rank / ranks, end = dealt * (rank + 1) / ranks;
    parts.push_back(heads_of(shard, first * group, (end - first) * group));
    // end [gap: deal]
  }
  return parts;
  // end [lab: deal]
}

/// All tokens in parts: those of each rank, one rank after the other.
template <class T>
std::vector<TensorView<T>> by_tokens(const Layout& layout, const TensorView<T>& all) {
  std::vector<TensorView<T>> parts;
  for (std::int64_t rank = 0, first = 0; rank < layout.ranks(); ++rank) {
    const std::int64_t held = layout.positions(static_cast<int>(rank)).size();
    parts.push_back(tokens_of(all, first, held));
    first += held;
  }
  return parts;
}

/// Sends each rank its part of `leaving`, and takes from each its part of `arriving`. With these two
/// exchanged, it undoes itself.
template <class Element, class T, class U>
void all_to_all(RankProblem<Element>& r, int tag, const std::vector<TensorView<T>>& leaving,
                const std::vector<TensorView<U>>& arriving) {
  // [lab: all_to_all]
  std::vector<MeteredBuffer<U>> sent, received;
  std::vector<Request> posted;
  for (int rank = 0; rank < r.ranks(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    MeteredBuffer<U>& out = sent.emplace_back(packed(leaving[at], r.memory));
    MeteredBuffer<U>& in = received.emplace_back(r.memory, arriving[at].extents.size());
    if (rank == r.rank()) {
      std::swap(out, in);
      continue;
    }
    const auto to = writable_bytes_of(in.data(), in.size());
    // [gap: exchange]
    posted.push_back(r.network.post_receive(rank, tag, to));
    posted.push_back(r.network.post_send(rank, tag, bytes_of(out.data(), out.size())));
    // end [gap: exchange]
  }
  for (const Request request : posted) r.network.wait(request);
  for (std::size_t at = 0; at < arriving.size(); ++at) unpack(received[at], arriving[at]);
  // end [lab: all_to_all]
}

template <class Element>
void attention(RankProblem<Element>& r) {
  const auto me = static_cast<std::size_t>(r.rank());
  HeadsProblem<Element> mine(r, by_heads(r, r.q)[me].extents.heads,
                             by_heads(r, r.k)[me].extents.heads);
  RankProblem<Element> alone = mine.rank_problem();
  ChunkSlot<Element> keys(alone);
  keys.owner = r.rank();
  r.work.hold_kv(keys.bytes());
  // [lab: there_and_back]
  all_to_all(r, kQueryRows, by_heads(r, r.q), by_tokens(r.q_layout, mine.q()));
  all_to_all(r, kKeyRows, by_heads(r, r.k),
             by_tokens(r.kv_layout, dense_view(keys.k.data(), alone.k.extents)));
  all_to_all(r, kValueRows, by_heads(r, r.v),
             by_tokens(r.kv_layout, dense_view(keys.v.data(), alone.v.extents)));
  if (alone.k.extents.heads > 0) {
    RowStates<Element> running(alone);
    pairwise_ring::attend(alone, keys, running);
    merge::finish(alone, running);
    r.work.visit(r.rank(), 0, r.problem.mask.count_all());
  }
  // [gap: home]
  all_to_all(r, kOutRows, by_tokens(r.q_layout, alone.out), by_heads(r, r.out));
  all_to_all(r, kLseRows, by_tokens(r.q_layout, alone.lse), by_heads(r, r.lse));
  // end [gap: home]
  // end [lab: there_and_back]
}

/// One rescale per key at most.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, problem.shape.kv_tokens);
}

inline constexpr StageFacts kFacts{
    .idea = "Heads are dealt to the ranks, and an all-to-all brings all their tokens together.",
    .costs = heads_costs,
    .queries_travel = true,
    .cpu_only = true};

}  // namespace ringlab::stages::heads
