// Stage 09, dealt_ring: which tokens a rank holds is the ring's own choice.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "stages/06_causal_ring/causal_ring.h"

namespace ringlab::stages::dealt_ring {

/// The layout of `tokens` tokens on `ranks` ranks.
struct Spread {
  LayoutKind kind = LayoutKind::contiguous;
  std::int64_t tokens = 0;
  int ranks = 1;
};

/// Part `index` of `parts` nearly equal parts of the sequence; the first ones are a token longer.
inline PositionRun part_of(const Spread& s, int parts, int index) {
  const std::int64_t length = s.tokens / parts, longer = s.tokens % parts;
  return {index * length + std::min<std::int64_t>(index, longer), length + (index < longer ? 1 : 0),
          1};
}

/// The positions of `rank`, row after row.
inline Positions positions_of(const Spread& s, int rank) {
  // [lab: positions_of]
  // [gap: positions_of]
  switch (s.kind) {
    case LayoutKind::contiguous:
      break;
    case LayoutKind::striped:  // deal the tokens out like cards
      return Positions({{rank, (s.tokens - rank + s.ranks - 1) / s.ranks, s.ranks}});
    case LayoutKind::zigzag: {  // an early part, and the late part that makes up for it
      const PositionRun early = part_of(s, 2 * s.ranks, rank);
      const PositionRun late = part_of(s, 2 * s.ranks, 2 * s.ranks - 1 - rank);
      return Positions({early, late});
    }
  }
  return Positions({part_of(s, s.ranks, rank)});
  // end [gap: positions_of]
  // end [lab: positions_of]
}

/// positions_of for the queries or keys of a run; a partition that was asked for by hand stays.
inline Positions positions_in(const std::optional<Layout>& by_hand, const Spread& s, int rank,
                              std::int64_t rows) {
  Positions positions = by_hand ? by_hand->positions(rank) : positions_of(s, rank);
  if (positions.size() == rows) return positions;
  throw_usage_error({.where = "positions_of rank " + std::to_string(rank),
                     .expected = std::to_string(rows) + " positions, one per row",
                     .actual = std::to_string(positions.size())});
}

template <class Element>
Positions query_positions(const RankProblem<Element>& r) {
  const Spread queries{r.options.layout, r.problem.shape.q_tokens, r.ranks()};
  return positions_in(r.options.q_layout, queries, r.rank(), r.q.extents.tokens);
}
template <class Element>
Positions key_positions(const RankProblem<Element>& r, int owner) {
  const Spread keys{r.options.layout, r.problem.shape.kv_tokens, r.ranks()};
  return positions_in(r.options.kv_layout, keys, owner, r.kv_layout.positions(owner).size());
}

template <class Element>
void attention(RankProblem<Element>& r) {
  const MaskTable mask(r.problem.mask, query_positions(r), r.memory);
  causal_ring::circulate(r, mask, [&](int owner) { return key_positions(r, owner).runs(); });
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of_chunks(problem, options));
}

inline constexpr StageFacts kFacts{
    .idea = "Zigzag and striped layouts give every rank the same work at every step.",
    .costs = ring_with_positions_costs,
    .skips_empty_blocks = true,
    .ring_traffic = true};

}  // namespace ringlab::stages::dealt_ring
