// Stage 02, online_softmax: one pass over the keys with a running (row_max, row_sum, acc).
#pragma once

#include "reference/core/state.h"
#include "stages/01_broadcast/broadcast.h"
#include "stages/common/costs.h"
#include "stages/common/kernel_shape.h"
#include "stages/common/launch.h"
#include "stages/common/mask_rows.h"
#include "stages/common/profiles.h"
#include "stages/tile/row_math.h"

namespace ringlab::stages::online_softmax {

/// One thread per query row; one block per `threads` rows of one head.
template <class Element>
struct Kernel {
  using Real = Accumulator<Element>;
  static constexpr Real kNothing = -std::numeric_limits<Real>::infinity();
  KernelShape shape;
  MaskRows mask;
  Array<const Element> q, k, v;  // (heads, queries | keys, channels); K/V heads for k and v
  Array<Element> out;            // (heads, queries, v_dim)
  Array<Real> lse;               // (heads, queries)

  template <class Block>
  RINGLAB_HD void operator()(Block& block) const {
    const RowTile tile = shape.row_tile(block.index(), block.threads());
    const std::int64_t kv_head = tile.head / shape.group;  // heads of a group are neighbours
    const Element* keys = k.data + kv_head * shape.keys * shape.head_dim;
    const Element* values = v.data + kv_head * shape.keys * shape.v_dim;
    Real* acc_rows = block.template shared<Real>(block.threads() * shape.v_dim);

    block.each([&](int thread) {
      if (thread >= tile.rows) return;
      const std::int64_t row = tile.first + thread, at = tile.head * shape.queries + row;
      // [lab: row]
      Real* acc = acc_rows + thread * shape.v_dim;
      for (std::int64_t c = 0; c < shape.v_dim; ++c) acc[c] = 0;
      // [gap: start]
      SoftmaxState<Real> state;  // row_max = -inf, row_sum = 0: no key seen yet
      // end [gap: start]
      for (std::int64_t key = 0; key < shape.keys; ++key) {
        if (!mask.allows(row, key)) continue;
        const Real score =
            Real(shape.scale) *
            dot<Real>(q.data + at * shape.head_dim, keys + key * shape.head_dim, shape.head_dim);
        // [gap: update]
        const Real top = score > state.row_max ? score : state.row_max;
        const Real keep = rescale_factor(state.row_max, top);  // e^(old max - new max)
        const Real weight = rescale_factor(score, top);        // e^(score - new max)
        state.row_max = top;
        state.row_sum = state.row_sum * keep + weight;
        scale_row(acc, keep, shape.v_dim);
        add_row(acc, weight, values + key * shape.v_dim, shape.v_dim);
        // end [gap: update]
      }
      // [gap: finish]
      const bool sees_nothing = is_empty(state);  // 0/0 otherwise
      lse[at] = sees_nothing ? kNothing : state.row_max + std::log(state.row_sum);
      for (std::int64_t c = 0; c < shape.v_dim; ++c) {
        const Real value = sees_nothing ? Real(0) : acc[c] / state.row_sum;
        out[at * shape.v_dim + c] = static_cast<Element>(value);
      }
      // end [gap: finish]
      // end [lab: row]
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
         Kernel<Element>{shape, mask.rows(all.positions), array_of(r.q), array_of(all.k),
                         array_of(all.v), array_of(r.out), array_of(r.lse)});
  attention::note_all_chunks(r);
}

/// Every key may raise the maximum, and so rescale all keys before it.
inline NumericsProfile profile(const Problem& problem, const RunOptions& options) {
  return stage_profile(problem, options, problem.shape.kv_tokens);
}

inline constexpr StageFacts kFacts{
    .idea = "One pass over the keys with a running maximum, sum and accumulator.",
    .costs = gather_costs};

}  // namespace ringlab::stages::online_softmax
