// Stage 01, broadcast: every rank gathers all K and V for itself, from everybody.
#pragma once

#include <algorithm>
#include <vector>

#include "reference/core/shards.h"
#include "stages/00_attention/attention.h"
#include "stages/common/costs.h"
#include "stages/common/kernel_shape.h"
#include "stages/common/launch.h"
#include "stages/common/mask_rows.h"
#include "stages/common/profiles.h"

namespace ringlab::stages::broadcast {

/// The place of one owner's chunk among the gathered keys.
struct Part {
  std::int64_t start = 0;
  std::int64_t count = 0;
};

/// All chunks, owner after owner in every head.
template <class Element>
struct Gathered {
  std::int64_t keys = 0;
  std::vector<Part> parts;                ///< by owner
  MeteredBuffer<std::int64_t> positions;  ///< global position of each gathered row
  MeteredBuffer<Element> k, v;            ///< (batch, kv_heads, keys, channels)
};

/// Sends this rank's rows of one tensor to everybody and receives everybody's, each in its place.
template <class Element>
void exchange(RankProblem<Element>& r, const TensorView<const Element>& mine,
              const TensorView<Element>& all, const std::vector<Part>& parts, int tag) {
  const auto place = [&](std::int64_t head, int owner) {
    const Part& part = parts[static_cast<std::size_t>(owner)];
    return rows_of(all, head, part.start, part.count);
  };
  // [lab: exchange]
  // [gap: exchange]
  std::vector<Request> posted;
  for (std::int64_t head = 0; head < mine.extents.batch * mine.extents.heads; ++head) {
    const auto own = rows_of(mine, head, 0, parts[static_cast<std::size_t>(r.rank())].count);
    for (int peer = 0; peer < r.ranks(); ++peer) {
      if (peer == r.rank()) {
        std::ranges::copy(own, place(head, peer).begin());
        continue;
      }
      const auto theirs = std::as_writable_bytes(place(head, peer));
      posted.push_back(r.network.post_receive(peer, tag, theirs));
      posted.push_back(r.network.post_send(peer, tag, std::as_bytes(own)));
    }
  }
  for (const Request request : posted) r.network.wait(request);
  // end [gap: exchange]
  // end [lab: exchange]
}

/// All keys and values, which every rank then computes on. Every rank must call it.
template <class Element>
Gathered<Element> gather(RankProblem<Element>& r) {
  const Shape& s = r.problem.shape;
  MeteredBuffer<std::int64_t> positions(r.memory, s.kv_tokens);
  std::vector<Part> parts(static_cast<std::size_t>(r.ranks()));
  std::int64_t keys = 0;
  for (int owner = 0; owner < r.ranks(); ++owner) {
    // [lab: place]
    // [gap: place]
    const Positions& held = r.kv_layout.positions(owner);
    const std::int64_t count = held.size();
    parts[static_cast<std::size_t>(owner)] = {.start = keys, .count = count};
    for (std::int64_t i = 0; i < count; ++i) positions.data()[keys++] = held[i];
    // end [gap: place]
    // end [lab: place]
  }
  const Extents k_all{s.batch, s.kv_heads, keys, s.head_dim};
  const Extents v_all{s.batch, s.kv_heads, keys, s.v_dim};
  MeteredBuffer<Element> k(r.memory, k_all.size()), v(r.memory, v_all.size());
  r.work.hold_kv(k.bytes() + v.bytes());
  exchange(r, r.k, dense_view(k.data(), k_all), parts, 0);
  exchange(r, r.v, dense_view(v.data(), v_all), parts, 1);
  return {keys, std::move(parts), std::move(positions), std::move(k), std::move(v)};
}

template <class Element>
void attention(RankProblem<Element>& r) {
  const Gathered<Element> all = gather(r);
  const KernelShape shape = kernel_shape(r, all.keys);
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  MeteredBuffer<Accumulator<Element>> scores(r.memory, shape.heads * shape.queries * shape.keys);
  launch(r, shape.blocks(r.options.tile_queries),
         attention::Kernel<Element>{shape, mask.rows(all.positions), array_of(r.q), array_of(all.k),
                                    array_of(all.v), array_of(scores), array_of(r.out),
                                    array_of(r.lse)});
  attention::note_all_chunks(r);
}

/// Two passes: nothing is ever rescaled; one is the least a profile states.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, 1);
}

inline constexpr StageFacts kFacts{
    .idea = "Every rank gathers all keys and values for itself; nobody stands in between.",
    .costs = gather_costs};

}  // namespace ringlab::stages::broadcast
