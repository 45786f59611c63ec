// The kernel of the rings after stage 06, and the end of their runs: no longer the lesson there.
#pragma once

#include <limits>

#include "stages/common/finished_row.h"
#include "stages/common/kernel_shape.h"
#include "stages/common/mask_rows.h"
#include "stages/common/row_states.h"
#include "stages/tile/row_math.h"

namespace ringlab::stages {

/// Stage 06's kernel without its gap: one chunk of keys, going on from the running state of the
/// chunks before.
template <class Element>
struct ChunkKernel {
  using Real = Accumulator<Element>;
  static constexpr Real kNothing = -std::numeric_limits<Real>::infinity();
  KernelShape shape;
  std::int64_t tile_keys = 1;
  bool all_visible = false;  // no query of this rank is kept from any key of the chunk
  MaskRows mask;
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
      for (std::int64_t c = 0; c < d; ++c) query_rows[thread * d + c] = Real(q[at * d + c]);
      running[thread] = states[at];
      for (std::int64_t c = 0; c < dv; ++c) acc_rows[thread * dv + c] = accs[at * dv + c];
    });
    const KeyInterval seen = mask.seen_by(tile.first, tile.rows);
    for (std::int64_t first = 0; first < shape.keys; first += tile_keys) {
      const std::int64_t left = shape.keys - first, count = left < tile_keys ? left : tile_keys;
      const KeyInterval span = mask.span_of(first, count);
      if (span.end <= seen.begin || seen.end <= span.begin) continue;  // no row sees a key of it
      block.each([&](int thread) {  // load the tile: neighbouring threads, neighbouring elements
        for (std::int64_t i = thread; i < count * d; i += block.threads()) {
          key_tile[i] = static_cast<Real>(keys[first * d + i]);
        }
        for (std::int64_t i = thread; i < count * dv; i += block.threads()) {
          value_tile[i] = static_cast<Real>(values[first * dv + i]);
        }
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
          if (!all_visible && !mask.allows(row, first + j)) continue;
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
      for (std::int64_t c = 0; c < dv; ++c) accs[at * dv + c] = acc_rows[thread * dv + c];
    });
  }

  template <class Visit>
  void for_each_array(Visit visit) {
    mask.for_each_array(visit);
    visit(q), visit(k), visit(v), visit(states), visit(accs);
  }
};

/// Row `row` of the outputs from its running state.
template <class Element>
void finish_row(RankProblem<Element>& r, const RowStates<Element>& whole, std::int64_t row) {
  const std::int64_t v_dim = r.problem.shape.v_dim;
  const auto& state = whole.states.data()[row];
  r.lse.data[row] = finished_lse(state);
  for (std::int64_t at = row * v_dim; at < (row + 1) * v_dim; ++at) {
    r.out.data[at] = finished_value<Element>(state, whole.accs.data()[at]);
  }
}

/// All rows of all heads.
template <class Element>
void finish_rows(RankProblem<Element>& r, const RowStates<Element>& whole) {
  for (std::int64_t row = 0; row < whole.states.size(); ++row) finish_row(r, whole, row);
}

}  // namespace ringlab::stages
