// Stage 10, balanced_ring: results go back to the tokens they are of, wherever those were dealt to.
#pragma once

#include <vector>

#include "stages/09_dealt_ring/dealt_ring.h"
#include "stages/common/device_rings.h"

namespace ringlab::stages::balanced_ring {

using dealt_ring::Spread, dealt_ring::part_of;

/// The part that holds `token`.
inline int part_with(const Spread& s, int parts, std::int64_t token) {
  const std::int64_t length = s.tokens / parts, longer = s.tokens % parts;
  const std::int64_t border = longer * (length + 1);  // where the shorter parts begin
  return static_cast<int>(token < border ? token / (length + 1)
                                         : longer + (token - border) / length);
}

/// The rank and row of a token: positions_of, read backwards.
struct Place {
  int rank = 0;
  std::int64_t row = 0;
};

inline Place place_of(const Spread& s, std::int64_t token) {
  // [lab: place_of]
  // [gap: place_of]
  if (s.kind == LayoutKind::striped) {
    return {static_cast<int>(token % s.ranks), token / s.ranks};
  }
  if (s.kind == LayoutKind::zigzag) {
    const int parts = 2 * s.ranks, part = part_with(s, parts, token);
    const std::int64_t row = token - part_of(s, parts, part).first;
    if (part < s.ranks) return {part, row};
    const int rank = parts - 1 - part;
    return {rank, part_of(s, parts, rank).count + row};  // the late part lies below the early one
  }
  // end [gap: place_of]
  const int part = part_with(s, s.ranks, token);
  return {part, token - part_of(s, s.ranks, part).first};
  // end [lab: place_of]
}

/// The token of each of this rank's `rows` result rows: every token is asked where it lies.
inline Positions tokens_of_rows(const Spread& s, int rank, std::int64_t rows) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(rows), 0);
  for (std::int64_t token = 0; token < s.tokens; ++token) {
    const Place place = place_of(s, token);
    if (place.rank == rank) tokens.at(static_cast<std::size_t>(place.row)) = token;
  }
  return Positions::from_list(tokens);
}

/// Says which tokens the rank's results are of, unless a partition was asked for by hand.
template <class Element>
void tell_out_positions(RankProblem<Element>& r) {
  if (r.options.q_layout) return;
  const Spread queries{r.options.layout, r.problem.shape.q_tokens, r.ranks()};
  r.out_positions = tokens_of_rows(queries, r.rank(), r.q.extents.tokens);
}

template <class Element>
void attention(RankProblem<Element>& r) {
  dealt_ring::attention(r);
  tell_out_positions(r);
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of_chunks(problem, options));
}

/// On GPUs one thread drives all ranks and knows all positions: they do not travel.
inline StatedCosts costs(const Problem& problem, const RunOptions& options, int rank) {
  return options.device == DeviceKind::cpu ? ring_with_positions_costs(problem, options, rank)
                                           : ring_costs(problem, options, rank);
}

inline constexpr StageFacts kFacts{
    .idea = "Results find their tokens through the inverse of the layout, whichever it is.",
    .costs = costs,
    .skips_empty_blocks = true,
    .ring_traffic = true,
    .on_gpus = balanced_ring_on_gpus};

}  // namespace ringlab::stages::balanced_ring
