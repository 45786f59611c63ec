// Stage 03, flash_blocks: tiles of queries against tiles of keys; no N x N array anywhere.
#pragma once

#include "reference/core/state.h"
#include "stages/01_broadcast/broadcast.h"
#include "stages/common/costs.h"
#include "stages/common/kernel_shape.h"
#include "stages/common/launch.h"
#include "stages/common/mask_rows.h"
#include "stages/common/profiles.h"
#include "stages/tile/row_math.h"

namespace ringlab::stages::flash_blocks {

/// One thread per query row; one block per tile of rows of one head. The block's threads load each
/// K/V tile together, once for all of them.
template <class Element>
struct Kernel {
  using Real = Accumulator<Element>;
  static constexpr Real kNothing = -std::numeric_limits<Real>::infinity();
  KernelShape shape;
  std::int64_t tile_keys = 1;
  MaskRows mask;
  Array<const Element> q, k, v;  // (heads, queries | keys, channels); K/V heads for k and v
  Array<Element> out;            // (heads, queries, v_dim)
  Array<Real> lse;               // (heads, queries)

  template <class Block>
  // NOLINTNEXTLINE(readability-function-size): one kernel, read from top to bottom
  RINGLAB_HD void operator()(Block& block) const {
    const std::int64_t d = shape.head_dim, dv = shape.v_dim;
    const RowTile tile = shape.row_tile(block.index(), block.threads());
    // [gap: head]
    const std::int64_t kv_head = tile.head / shape.group;  // heads of a group are neighbours
    // end [gap: head]
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
      for (std::int64_t c = 0; c < dv; ++c) acc_rows[thread * dv + c] = 0;
      running[thread] = {};
    });
    const KeyInterval seen = mask.seen_by(tile.first, tile.rows);
    // [lab: tiles]
    // [gap: tiles]
    for (std::int64_t first = 0; first < shape.keys; first += tile_keys) {
      const std::int64_t left = shape.keys - first, count = left < tile_keys ? left : tile_keys;
      const KeyInterval span = mask.span_of(first, count);
      if (span.end <= seen.begin || seen.end <= span.begin) continue;  // no row sees a key of it
      // end [gap: tiles]
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
        // [gap: scores]
        Real top = state.row_max;
        for (std::int64_t j = 0; j < count; ++j) {
          score[j] = kNothing;
          if (!mask.allows(row, first + j)) continue;
          score[j] = Real(shape.scale) * dot<Real>(query, key_tile + j * d, d);
          if (score[j] > top) top = score[j];
        }
        // end [gap: scores]
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
    // end [lab: tiles]
    block.each([&](int thread) {
      if (thread >= tile.rows) return;
      const std::int64_t at = tile.head * shape.queries + tile.first + thread;
      const SoftmaxState<Real>& state = running[thread];
      const bool sees_nothing = is_empty(state);  // 0/0 otherwise
      lse[at] = sees_nothing ? kNothing : state.row_max + std::log(state.row_sum);
      for (std::int64_t c = 0; c < dv; ++c) {
        const Real value = sees_nothing ? Real(0) : acc_rows[thread * dv + c] / state.row_sum;
        out[at * dv + c] = static_cast<Element>(value);
      }
    });
  }

  template <class Visit>
  void for_each_array(Visit visit) {
    mask.for_each_array(visit);
    visit(q), visit(k), visit(v), visit(out), visit(lse);
  }
};

template <class Element>
void attention(RankProblem<Element>& r) {
  const broadcast::Gathered<Element> all = broadcast::gather(r);
  const KernelShape shape = kernel_shape(r, all.keys);
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  launch(r, shape.blocks(r.options.tile_queries),
         Kernel<Element>{shape, r.options.tile_keys, mask.rows(all.positions), array_of(r.q),
                         array_of(all.k), array_of(all.v), array_of(r.out), array_of(r.lse)});
  attention::note_all_chunks(r);
}

/// A tile rescales once, whatever it holds.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, tiles_of(problem.shape.kv_tokens, options.tile_keys));
}

inline constexpr StageFacts kFacts{
    .idea = "Tiles of queries meet tiles of keys, and no N x N array is left.",
    .costs = gather_costs};

}  // namespace ringlab::stages::flash_blocks
