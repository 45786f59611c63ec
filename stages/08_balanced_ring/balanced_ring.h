// Stage 08, balanced_ring: which tokens a rank holds decides who waits for whom.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "stages/common/chunk_kernel.h"
#include "stages/common/chunk_slot.h"
#include "stages/common/launch.h"
#include "stages/common/profiles.h"
#include "stages/common/ring_tokens.h"

namespace ringlab::stages::balanced_ring {

/// How `tokens` tokens lie on `ranks` ranks.
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

/// The part that holds `token`.
inline int part_with(const Spread& s, int parts, std::int64_t token) {
  const std::int64_t length = s.tokens / parts, longer = s.tokens % parts;
  const std::int64_t border = longer * (length + 1);  // where the shorter parts begin
  return static_cast<int>(token < border ? token / (length + 1)
                                         : longer + (token - border) / length);
}

/// The positions of `rank`, row after row.
inline Positions positions_of(const Spread& s, int rank) {
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
}

/// Where a token lies: positions_of, read backwards.
struct Place {
  int rank = 0;
  std::int64_t row = 0;
};

inline Place place_of(const Spread& s, std::int64_t token) {
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
}

/// Which token each of this rank's `rows` result rows is: asked of every token where it lies.
inline Positions tokens_of_rows(const Spread& s, int rank, std::int64_t rows) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(rows), 0);
  for (std::int64_t token = 0; token < s.tokens; ++token) {
    const Place place = place_of(s, token);
    if (place.rank == rank) tokens.at(static_cast<std::size_t>(place.row)) = token;
  }
  return Positions::from_list(tokens);
}

/// positions_of for the queries or keys of a run; a partition that was asked for by hand stays.
inline Positions positions_in(const std::optional<Layout>& by_hand, const Spread& s, int rank,
                              std::int64_t rows) {
  Positions positions = by_hand ? by_hand->positions(rank) : positions_of(s, rank);
  if (positions.size() == rows) return positions;
  throw_usage_error({.where = "positions_of rank " + std::to_string(rank),
                     .expected = std::to_string(rows) + " positions, one per row",
                     .actual = std::to_string(positions.size()),
                     .hint = ""});
}

/// A chunk and the tokens that its rows are: they travel together.
template <class Element>
struct Slot : ChunkSlot<Element> {
  using ChunkSlot<Element>::ChunkSlot;
  std::vector<PositionRun> runs;
};

/// The runs of the keys of `owner`.
template <class Element>
std::vector<PositionRun> key_runs(const RankProblem<Element>& r, int owner) {
  const Spread keys{r.options.layout, r.problem.shape.kv_tokens, r.ranks()};
  return positions_in(r.options.kv_layout, keys, owner, r.kv_layout.positions(owner).size()).runs();
}

inline constexpr int kKeys = 0, kValues = 1, kPositions = 2;  // message tags

/// One hop: posts the chunk in `leaving` to one neighbour and the other's chunk into `arriving`.
template <class Element>
std::vector<Request> post_hop(RankProblem<Element>& r, Slot<Element>& leaving,
                              Slot<Element>& arriving) {
  const int ranks = r.ranks();
  const int step = r.options.direction == RingDirection::next ? 1 : ranks - 1;
  const int to = (r.rank() + step) % ranks, from = (r.rank() + ranks - step) % ranks;
  arriving.owner = (leaving.owner + ranks - step) % ranks;
  arriving.runs.resize(
      key_runs(r, arriving.owner).size());  // how many; which ones, the sender says
  std::vector<Request> posted;
  posted.push_back(r.network.post_send(to, kPositions, std::as_bytes(std::span(leaving.runs))));
  posted.push_back(
      r.network.post_receive(from, kPositions, std::as_writable_bytes(std::span(arriving.runs))));
  posted.push_back(r.network.post_send(to, kKeys, leaving.k_bytes(r)));
  posted.push_back(r.network.post_send(to, kValues, leaving.v_bytes(r)));
  posted.push_back(r.network.post_receive(from, kKeys, arriving.k_bytes(r)));
  posted.push_back(r.network.post_receive(from, kValues, arriving.v_bytes(r)));
  return posted;
}

/// The running state of `queries` takes in the chunk that lies in `slot`.
template <class Element>
void attend(RankProblem<Element>& r, const Positions& queries, const MaskTable& mask,
            const Slot<Element>& slot, RowStates<Element>& running) {
  const Positions held(slot.runs);
  const Coverage coverage = r.problem.mask.classify(queries, held);
  if (coverage == Coverage::empty) return;
  const KernelShape shape = kernel_shape(r, held.size());
  const MeteredBuffer<std::int64_t> positions = position_array(held, r.memory);
  launch(r, shape.blocks(r.options.tile_queries),
         ChunkKernel<Element>{shape, r.options.tile_keys, coverage == Coverage::full,
                              mask.rows(positions), array_of(r.q), array_of(slot.k),
                              array_of(slot.v), array_of(running.states), array_of(running.accs)});
  const int ranks = r.ranks();
  const int hops =
      r.options.direction == RingDirection::next ? r.rank() - slot.owner : slot.owner - r.rank();
  r.work.visit(slot.owner, (hops + ranks) % ranks, r.problem.mask.count(queries, held));
}

/// Where the queries of all ranks are.
template <class Element>
Spread query_spread(const RankProblem<Element>& r) {
  return {r.options.layout, r.problem.shape.q_tokens, r.ranks()};
}
template <class Element>
Positions query_positions(const RankProblem<Element>& r) {
  return positions_in(r.options.q_layout, query_spread(r), r.rank(), r.q.extents.tokens);
}
/// Says which tokens the rank's results are of.
template <class Element>
void tell_out_positions(RankProblem<Element>& r) {
  if (r.options.q_layout) return;
  r.out_positions = tokens_of_rows(query_spread(r), r.rank(), r.q.extents.tokens);
}

/// On devices one thread knows where all keys are (stages/common/streamed_ring.h).
template <class Element>
RingTokens ring_tokens(const RankProblem<Element>& r) {
  std::vector<Positions> keys;
  for (int owner = 0; owner < r.ranks(); ++owner) keys.emplace_back(key_runs(r, owner));
  return {r.problem.mask, query_positions(r), std::move(keys), EmptyBlocks::skipped};
}

template <class Element>
void attention(RankProblem<Element>& r) {
  const int ranks = r.ranks();
  const Positions queries = query_positions(r);
  const MaskTable mask(r.problem.mask, queries, r.memory);
  RowStates<Element> running(r);
  Slot<Element> here(r);
  std::optional<Slot<Element>> arriving;  // a ring of one rank has no hop
  if (ranks > 1) arriving.emplace(r);
  r.work.hold_kv((ranks > 1 ? 2 : 1) * (here.k.bytes() + here.v.bytes()));
  here.fill_with_own(r);
  here.runs = key_runs(r, r.rank());

  for (int hop = 0; hop < ranks; ++hop) {
    const bool last = hop + 1 == ranks;
    std::vector<Request> posted;
    if (!last) posted = post_hop(r, here, *arriving);
    attend(r, queries, mask, here, running);
    for (const Request request : posted) r.network.wait(request);
    if (!last) std::swap(here, *arriving);
  }
  finish_rows(r, running);
  tell_out_positions(r);
}

/// One rescale per tile of every chunk.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  const Layout layout = make_layout(options, problem.shape.kv_tokens, options.kv_layout);
  std::int64_t tiles = 0;
  for (int owner = 0; owner < options.ranks; ++owner) {
    tiles += tiles_of(layout.positions(owner).size(), options.tile_keys);
  }
  return stage_profile(problem, options, tiles);
}

}  // namespace ringlab::stages::balanced_ring
