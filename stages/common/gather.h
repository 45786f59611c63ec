// Stage 01's gather as a building block: every rank ends up with all keys and values.
#pragma once

#include <algorithm>
#include <vector>

#include "reference/core/shards.h"
#include "stages/common/rank_problem.h"

namespace ringlab::stages {

/// All chunks, owner after owner: owner o's keys are rows start[o] … start[o+1]-1 of every head.
template <class Element>
struct Gathered {
  std::int64_t keys = 0;
  std::vector<std::int64_t> start;
  MeteredBuffer<std::int64_t> positions;  ///< global position of each gathered row
  MeteredBuffer<Element> k, v;            ///< (batch, kv_heads, keys, channels)
};

/// Posts this rank's rows of one tensor to everybody, and everybody's into their places.
template <class Element>
void post_gather(RankProblem<Element>& r, const TensorView<const Element>& mine,
                 const TensorView<Element>& all, const std::vector<std::int64_t>& start, int tag,
                 std::vector<Request>& posted) {
  const auto rank = static_cast<std::size_t>(r.rank());
  for (std::int64_t head = 0; head < mine.extents.batch * mine.extents.heads; ++head) {
    const auto own = rows_of(mine, head, 0, mine.extents.tokens);
    std::ranges::copy(own, rows_of(all, head, start[rank], mine.extents.tokens).begin());
    for (std::size_t peer = 0; peer + 1 < start.size(); ++peer) {
      if (peer == rank) continue;
      const auto theirs = rows_of(all, head, start[peer], start[peer + 1] - start[peer]);
      const int other = static_cast<int>(peer);
      posted.push_back(r.network.post_receive(other, tag, std::as_writable_bytes(theirs)));
      posted.push_back(r.network.post_send(other, tag, std::as_bytes(own)));
    }
  }
}

/// Every rank must call it. Holds N keys and values afterwards, and says so to the work log.
template <class Element>
Gathered<Element> gather_chunks(RankProblem<Element>& r) {
  const Shape& s = r.problem.shape;
  const Extents k_all = s.k(), v_all = s.v();
  Gathered<Element> all{.keys = s.kv_tokens,
                        .start = {0},
                        .positions = MeteredBuffer<std::int64_t>(r.memory, s.kv_tokens),
                        .k = MeteredBuffer<Element>(r.memory, k_all.size()),
                        .v = MeteredBuffer<Element>(r.memory, v_all.size())};
  for (int owner = 0; owner < r.ranks(); ++owner) {
    const Positions& held = r.kv_layout.positions(owner);
    std::ranges::copy(held.to_list(), all.positions.data() + all.start.back());
    all.start.push_back(all.start.back() + held.size());
  }
  r.work.hold_kv(all.k.bytes() + all.v.bytes());
  std::vector<Request> posted;
  post_gather(r, r.k, dense_view(all.k.data(), k_all), all.start, 0, posted);
  post_gather(r, r.v, dense_view(all.v.data(), v_all), all.start, 1, posted);
  for (const Request request : posted) r.network.wait(request);
  return all;
}

/// Notes every chunk as computed at hop 0, with its allowed pairs.
template <class Element>
void visit_all_chunks(RankProblem<Element>& r) {
  for (int owner = 0; owner < r.ranks(); ++owner) {
    r.work.visit(
        owner, 0,
        r.problem.mask.count(r.q_layout.positions(r.rank()), r.kv_layout.positions(owner)));
  }
}

}  // namespace ringlab::stages
