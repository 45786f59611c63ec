// Stage 04, merge: a partial answer per chunk of keys, and a tree that merges them into one.
#pragma once

#include "stages/01_broadcast/broadcast.h"
#include "stages/common/costs.h"
#include "stages/common/finished_row.h"
#include "stages/common/kernel_shape.h"
#include "stages/common/mask_rows.h"
#include "stages/common/profiles.h"
#include "stages/common/row_states.h"
#include "stages/common/take_in.h"
#include "stages/tile/row_math.h"

namespace ringlab::stages::merge {

/// Stage 03's kernel on a part of the keys: it goes on from the running state in memory, and leaves
/// it there unfinished. `Visible` says what a row sees.
template <class Element, class Visible = MaskRows>
struct Kernel {
  using Real = Accumulator<Element>;
  static constexpr Real kNothing = -std::numeric_limits<Real>::infinity();
  KernelShape shape;
  std::int64_t tile_keys = 1;
  KeyInterval part;  // which of the keys
  Visible mask;
  Array<const Element> q, k, v;      // (heads, queries | keys, channels); K/V heads for k and v
  Array<SoftmaxState<Real>> states;  // (heads, queries)
  Array<Real> accs;                  // (heads, queries, v_dim), not divided by the row sums

  template <class Block>
  // NOLINTNEXTLINE(readability-function-size): one kernel, read from top to bottom
  RINGLAB_HD void operator()(Block& block) const {
    const std::int64_t d = shape.head_dim, dv = shape.v_dim;
    const RowTile tile = shape.row_tile(block.index(), block.threads());
    const std::int64_t kv_head = tile.head / shape.group;  // heads of a group are neighbours
    const Element* keys = k.data + kv_head * shape.keys * d;
    const Element* values = v.data + kv_head * shape.keys * dv;
    Real* key_tile = block.template shared<Real>(tile_keys * d);
    Real* value_tile = block.template shared<Real>(tile_keys * dv);
    Real* query_rows = block.template shared<Real>(block.threads() * d);
    Real* score_rows = block.template shared<Real>(block.threads() * tile_keys);
    Real* acc_rows = block.template shared<Real>(block.threads() * dv);
    auto running = block.template per_thread<SoftmaxState<Real>>();

    block.each([&](int thread) {
      if (thread >= tile.rows) return;
      const std::int64_t at = tile.head * shape.queries + tile.first + thread;
      copy_row(query_rows + thread * d, q.data + at * d, d);
      copy_row(acc_rows + thread * dv, accs.data + at * dv, dv);
      running[thread] = states[at];
    });
    const KeyInterval seen = mask.seen_by(tile.first, tile.rows);
    for (std::int64_t first = part.begin; first < part.end; first += tile_keys) {
      const std::int64_t left = part.end - first, count = left < tile_keys ? left : tile_keys;
      const KeyInterval span = mask.span_of(first, count);
      if (span.end <= seen.begin || seen.end <= span.begin) continue;  // no row sees a key of it
      block.each([&](int thread) {  // load the tile, all together
        copy_together(key_tile, keys + first * d, count * d, thread, block.threads());
        copy_together(value_tile, values + first * dv, count * dv, thread, block.threads());
      });
      block.each([&](int thread) {  // one row: scores of the tile, one rescale, weighted values
        if (thread >= tile.rows) return;
        const std::int64_t row = tile.first + thread;
        const Real* query = query_rows + thread * d;
        Real* score = score_rows + thread * tile_keys;
        Real* acc = acc_rows + thread * dv;
        SoftmaxState<Real>& state = running[thread];
        Real top = state.row_max;
        for (std::int64_t j = 0; j < count; ++j) {
          score[j] = kNothing;
          if (!mask.allows(row, first + j)) continue;
          score[j] = Real(shape.scale) * dot<Real>(query, key_tile + j * d, d);
          if (score[j] > top) top = score[j];
        }
        const Real keep = rescale_factor(state.row_max, top);
        state.row_max = top;
        state.row_sum *= keep;
        scale_row(acc, keep, dv);
        for (std::int64_t j = 0; j < count; ++j) {
          const Real weight = rescale_factor(score[j], top);  // masked: 0
          if (weight == 0) continue;
          state.row_sum += weight;
          add_row(acc, weight, value_tile + j * dv, dv);
        }
      });
    }
    block.each([&](int thread) {
      if (thread >= tile.rows) return;
      const std::int64_t at = tile.head * shape.queries + tile.first + thread;
      states[at] = running[thread];
      copy_row(accs.data + at * dv, acc_rows + thread * dv, dv);
    });
  }

  template <class Visit>
  void for_each_array(Visit visit) {
    mask.for_each_array(visit);
    visit(q), visit(k), visit(v), visit(states), visit(accs);
  }
};

/// into += from, row by row. Commutative; the state that saw nothing changes nothing.
template <class Element>
void merge(RowStates<Element>& into, const RowStates<Element>& from, std::int64_t v_dim) {
  using Real = Accumulator<Element>;
  for (std::int64_t row = 0; row < into.states.size(); ++row) {
    SoftmaxState<Real>& mine = into.states.data()[row];
    const SoftmaxState<Real>& theirs = from.states.data()[row];
    Real* acc = into.accs.data() + row * v_dim;
    const Real* their_acc = from.accs.data() + row * v_dim;
    // [lab: merge]
    // [gap: merge]
    const Real top = theirs.row_max > mine.row_max ? theirs.row_max : mine.row_max;
    const Real keep = rescale_factor(mine.row_max, top);  // 0, not NaN, for a part with no key
    const Real weight = rescale_factor(theirs.row_max, top);
    mine.row_max = top;
    mine.row_sum = mine.row_sum * keep + theirs.row_sum * weight;
    for (std::int64_t c = 0; c < v_dim; ++c) acc[c] = acc[c] * keep + their_acc[c] * weight;
    // end [gap: merge]
    // end [lab: merge]
  }
}

/// The outputs from running states that have met all keys.
template <class Element>
void finish(RankProblem<Element>& r, const RowStates<Element>& whole) {
  const std::int64_t v_dim = r.problem.shape.v_dim;
  for (std::int64_t row = 0; row < whole.states.size(); ++row) {
    // [lab: finish]
    const auto& state = whole.states.data()[row];
    // [gap: finish]
    r.lse.data[row] = saw_nothing(state) ? state.row_max : state.row_max + std::log(state.row_sum);
    // end [gap: finish]
    for (std::int64_t at = row * v_dim; at < (row + 1) * v_dim; ++at) {
      r.out.data[at] = finished_value<Element>(state, whole.accs.data()[at]);
    }
    // end [lab: finish]
  }
}

template <class Element>
void attention(RankProblem<Element>& r) {
  const broadcast::Gathered<Element> all = broadcast::gather(r);
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  std::vector<RowStates<Element>> parts;
  for (const auto& [start, count] : all.parts) {
    take_in<Kernel>(r, mask.rows(all.positions),
                    {all.k.data(), all.v.data(), {start, start + count}}, parts.emplace_back(r));
  }
  // A balanced tree; any other one gives the same answer up to rounding.
  for (std::size_t step = 1; step < parts.size(); step *= 2) {
    for (std::size_t left = 0; left + step < parts.size(); left += 2 * step) {
      merge(parts[left], parts[left + step], r.problem.shape.v_dim);
    }
  }
  finish(r, parts.front());
  attention::note_all_chunks(r);
}

/// The tiles of the longest part, then one rescale per level of the tree.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  std::int64_t levels = 0;
  while ((1 << levels) < options.ranks) ++levels;
  return stage_profile(problem, options,
                       tiles_of(largest_chunk(problem, options), options.tile_keys) + levels);
}

inline constexpr StageFacts kFacts{
    .idea = "Every chunk of keys gives a partial answer, and a tree merges them into one.",
    .costs = gather_costs};

}  // namespace ringlab::stages::merge
