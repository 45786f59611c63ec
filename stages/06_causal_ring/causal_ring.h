// Stage 06, causal_ring: positions travel with the chunk, and blocks that nobody sees are skipped.
#pragma once

#include <optional>
#include <vector>

#include "stages/common/chunk_slot.h"
#include "stages/common/kernel_shape.h"
#include "stages/common/launch.h"
#include "stages/common/mask_rows.h"
#include "stages/common/profiles.h"
#include "stages/common/row_states.h"
#include "stages/tile/row_math.h"

namespace ringlab::stages::causal_ring {

/// Stage 03's kernel on one chunk of keys; it goes on from the running state of the chunks before.
template <class Element>
struct Kernel {
  using Real = Accumulator<Element>;
  static constexpr Real kNothing = -std::numeric_limits<Real>::infinity();
  KernelShape shape;
  std::int64_t tile_keys = 1;
  bool all_visible = false;  // no query of this rank is kept from any key of the chunk
  MaskRows mask;
  Array<const Element> q, k, v;      // (heads, queries | keys, channels); K/V heads for k and v
  Array<SoftmaxState<Real>> states;  // (heads, queries)
  Array<Real> accs;                  // (heads, queries, v_dim), not divided by the row sums

  /// Whether local row `row` sees key `key` of the chunk. Both are asked for by global position.
  RINGLAB_HD bool sees(std::int64_t row, std::int64_t key) const {
    // [gap: sees]
    const std::int64_t position = mask.key_positions[key];
    const KeyInterval visible = mask.visible[row];
    return visible.begin <= position && position < visible.end && mask.bits_allow(row, position);
    // end [gap: sees]
  }

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
          if (!all_visible && !sees(row, first + j)) continue;
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

/// A chunk and the tokens that its rows are: they travel together.
template <class Element>
struct Slot : ChunkSlot<Element> {
  using ChunkSlot<Element>::ChunkSlot;
  std::vector<PositionRun> runs;
};

inline constexpr int kKeys = 0, kValues = 1, kPositions = 2;  // message tags

/// One hop: posts the chunk in `leaving` to one neighbour and the other's chunk into `arriving`.
template <class Element>
std::vector<Request> post_hop(RankProblem<Element>& r, Slot<Element>& leaving,
                              Slot<Element>& arriving) {
  const int ranks = r.ranks();
  const int step = r.options.direction == RingDirection::next ? 1 : ranks - 1;
  const int to = (r.rank() + step) % ranks, from = (r.rank() + ranks - step) % ranks;
  arriving.owner = (leaving.owner + ranks - step) % ranks;
  // How many runs will come is agreed beforehand, as all sizes are; what they are is not.
  arriving.runs.resize(r.kv_layout.positions(arriving.owner).runs().size());
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

/// The running state takes in the chunk that lies in `slot`.
template <class Element>
void attend(RankProblem<Element>& r, const MaskTable& mask, const Slot<Element>& slot, int hop,
            RowStates<Element>& running) {
  const Positions& queries = r.q_layout.positions(r.rank());
  // [gap: positions]
  const Positions held(slot.runs);
  // end [gap: positions]
  // [gap: skip]
  const Coverage coverage = r.problem.mask.classify(queries, held);
  if (coverage == Coverage::empty) return;
  const bool all_visible = coverage == Coverage::full;
  // end [gap: skip]
  const KernelShape shape = kernel_shape(r, held.size());
  const MeteredBuffer<std::int64_t> positions = position_array(held, r.memory);
  launch(r, shape.blocks(r.options.tile_queries),
         Kernel<Element>{shape, r.options.tile_keys, all_visible, mask.rows(positions),
                         array_of(r.q), array_of(slot.k), array_of(slot.v),
                         array_of(running.states), array_of(running.accs)});
  r.work.visit(slot.owner, hop, r.problem.mask.count(queries, held));
}

template <class Element>
void finish(RankProblem<Element>& r, const RowStates<Element>& whole, std::int64_t v_dim) {
  using Real = Accumulator<Element>;
  for (std::int64_t row = 0; row < whole.states.size(); ++row) {
    const SoftmaxState<Real>& state = whole.states.data()[row];
    const bool sees_nothing = state.row_max == Kernel<Element>::kNothing;  // 0/0 otherwise
    r.lse.data[row] =
        sees_nothing ? Kernel<Element>::kNothing : state.row_max + std::log(state.row_sum);
    for (std::int64_t at = row * v_dim; at < (row + 1) * v_dim; ++at) {
      const Real value = sees_nothing ? Real(0) : whole.accs.data()[at] / state.row_sum;
      r.out.data[at] = static_cast<Element>(value);
    }
  }
}

template <class Element>
void attention(RankProblem<Element>& r) {
  const int ranks = r.ranks();
  const MaskTable mask(r.problem.mask, r.q_layout.positions(r.rank()), r.memory);
  RowStates<Element> running(r);
  Slot<Element> here(r);
  std::optional<Slot<Element>> arriving;  // a ring of one rank has no hop
  if (ranks > 1) arriving.emplace(r);
  r.work.hold_kv((ranks > 1 ? 2 : 1) * (here.k.bytes() + here.v.bytes()));
  here.fill_with_own(r);
  here.runs = r.kv_layout.positions(r.rank()).runs();

  for (int hop = 0; hop < ranks; ++hop) {
    const bool last = hop + 1 == ranks;
    std::vector<Request> posted;
    if (!last) posted = post_hop(r, here, *arriving);
    attend(r, mask, here, hop, running);
    for (const Request request : posted) r.network.wait(request);
    if (!last) std::swap(here, *arriving);
  }
  finish(r, running, r.problem.shape.v_dim);
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

}  // namespace ringlab::stages::causal_ring
