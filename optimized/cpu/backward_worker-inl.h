// All queries against one K/V chunk, backward, tile by tile. Included once per target.
#if defined(RINGLAB_CPU_BACKWARD_WORKER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_BACKWARD_WORKER_INL_H_
#undef RINGLAB_CPU_BACKWARD_WORKER_INL_H_
#else
#define RINGLAB_CPU_BACKWARD_WORKER_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "optimized/cpu/backward_tile-inl.h"
#include "optimized/cpu/base_2.h"
#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/modifiers/tile_modifiers-inl.h"
#include "optimized/cpu/slice_shares.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// The job that all workers of a block share.
template <class Element>
struct BackwardJob {
  const Block<Element>& block;
  const QueryGradients<Element>& given;
  const BlockGradients<Element>& sums;
  std::vector<std::int64_t> positions;  ///< of the queries
};

/// A worker of share_out_slices(): no other worker adds to dK and dV of its slice meanwhile. It
/// holds a slice's dK and dV while all queries pass by (the loop by keys of FlashAttention-2, Dao
/// 2023, section 3.2).
template <class Element>
class BackwardWorker {
 public:
  using Real = Accumulator<Element>;

  explicit BackwardWorker(const BackwardJob<Element>& job)
      : job_(job),
        block_(job.block),
        channels_{block_.q.extents.channels, block_.v.extents.channels,
                  static_cast<Real>(in_base_2(block_.scale))},
        keys_(block_.tiles.keys, channels_.head_dim),
        values_(block_.tiles.keys, channels_.v_dim),
        q_rows_(tile_count(block_) * tile_width<Real>(), channels_.head_dim),
        dout_rows_(tile_count(block_) * tile_width<Real>(), channels_.v_dim),
        dk_(block_.tiles.keys, channels_.head_dim),
        dv_(block_.tiles.keys, channels_.v_dim),
        p_(aligned_array<Real>(block_.tiles.keys * tile_width<Real>())),
        ds_(aligned_array<Real>(block_.tiles.keys * tile_width<Real>())) {
    for (std::int64_t i = 0; i < tile_count(block_); ++i) {
      tiles_.emplace_back(channels_);
      modifiers_.emplace_back(block_);
    }
    if (modifiers_[0].caps()) {
      slopes_ = aligned_array<Real>(block_.tiles.keys * tile_width<Real>());
    }
  }

  static std::int64_t rows_at_once(const Block<Element>& block) {
    return tile_count(block) * tile_width<Real>();
  }

  void meet_queries(std::int64_t kv_head, const KeySlice& slice, std::int64_t head,
                    const RowRange& rows) {
    take_in_queries(head, rows);
    meet_keys(slice, kv_head, rows.first);
  }

  void add_to_dq(std::int64_t head, const RowRange& rows) {
    Real* dq = job_.sums.dq + (head * block_.q.extents.tokens + rows.first) * channels_.head_dim;
    for (std::size_t i = 0; i < used_; ++i) {
      tiles_[i].add_to(dq);
      dq += tile_width<Real>() * channels_.head_dim;
    }
  }

 private:
  static std::int64_t tile_count(const Block<Element>& block) {
    return tiles_for<Real>(block.tiles.queries, block.q.extents.tokens);
  }

  void take_in_queries(std::int64_t head, const RowRange& rows) {
    const std::int64_t first = rows.first, count = rows.last - rows.first;
    const std::int64_t width = tile_width<Real>(), at = head * block_.q.extents.tokens + first;
    const Element* const q = block_.q.data + at * channels_.head_dim;
    const Element* const dout = job_.given.dout.data + at * channels_.v_dim;
    q_rows_.load(q, count);
    q_rows_.make_finite();
    dout_rows_.load(dout, count);
    dout_rows_.make_finite();
    used_ = static_cast<std::size_t>((count + width - 1) / width);
    for (std::size_t i = 0; i < used_; ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) * width;
      tiles_[i].load(
          typename GradientTile<Real>::template GivenRows<Element>{
              .q = q + row * channels_.head_dim,
              .dout = dout + row * channels_.v_dim,
              .lse = job_.given.lse + at + row,
              .delta = job_.given.delta + at + row,
              .positions = job_.positions.data() + first + row,
              .count = std::min(width, count - row)},
          block_.mask);
      modifiers_[i].load(head, job_.positions.data() + first + row, tiles_[i].count());
    }
  }

  void meet_keys(const KeySlice& slice, std::int64_t kv_head, std::int64_t first_query) {
    const std::int64_t head_start = kv_head * block_.k.extents.tokens;
    const PositionRun* seen = nullptr;
    for (const KeyRows& keys : slice) {
      const PositionRun& run = block_.keys.runs()[keys.run];
      for (std::size_t i = 0; &run != seen && i < used_; ++i) tiles_[i].look_at(run);
      seen = &run;
      meet_rows(run, keys.rows, head_start + keys.start, first_query);
    }
  }

  /// `start`: row of K and V where the run begins.
  void meet_rows(const PositionRun& run, const RowRange& rows, std::int64_t start,
                 std::int64_t first_query) {
    const std::int64_t at = start + rows.first, count = rows.last - rows.first;
    Real* const dk = job_.sums.dk + at * channels_.head_dim;
    Real* const dv = job_.sums.dv + at * channels_.v_dim;
    bool loaded = false;
    for (std::size_t i = 0; i < used_; ++i) {
      const RowRange part = common(rows, tiles_[i].view().some);
      if (part.empty()) continue;
      if (!loaded) {
        keys_.load(block_.k.data + at * channels_.head_dim, count);
        keys_.make_finite();
        values_.load(block_.v.data + at * channels_.v_dim, count);
        dk_.load(dk, count);
        dv_.load(dv, count);
      }
      loaded = true;
      meet_part(run, part, part.first - rows.first, i, first_query);
    }
    if (!loaded) return;
    dk_.store(dk, count);
    dv_.store(dv, count);
  }

  /// Takes the rows of `part` of a run, the first of which is row `skipped` of the block at hand.
  void meet_part(const PositionRun& run, const RowRange& part, std::int64_t skipped, std::size_t i,
                 std::int64_t first_query) {
    const std::int64_t count = part.last - part.first;
    const std::int64_t row = static_cast<std::int64_t>(i) * tile_width<Real>();
    GradientTile<Real>& tile = tiles_[i];
    const KeyBlock<Real> block{keys_.raw(skipped), values_.raw(skipped), part.first, count};
    score_visible(run, block, i, first_query + row);
    tile.multiply_values(block, ds_.get());
    modifiers_[i].drop(keys_of(run, block), ds_.get());
    tile.differentiate_block(count, p_.get(), ds_.get());
    if (modifiers_[i].caps()) flatten(slopes_.get(), count * tile_width<Real>(), ds_.get());
    modifiers_[i].drop(keys_of(run, block), p_.get());
    tile.add_dq(keys_.finite(skipped), count, ds_.get());
    keys_.add_specials(skipped, count, ds_.get(), tile.dq());
    add_over_queries<Real>(p_.get(), count, dout_rows_, row, dv_.panel(skipped));
    add_over_queries<Real>(ds_.get(), count, q_rows_, row, dk_.panel(skipped));
  }

  /// Scores of tile i, whose first query is number `query` of the block's.
  void score_visible(const PositionRun& run, const KeyBlock<Real>& block, std::size_t i,
                     std::int64_t query) {
    const GradientTile<Real>& tile = tiles_[i];
    tile.score_block(block, p_.get());
    modifiers_[i].change_scores(keys_of(run, block), p_.get(), slopes_.get());
    tile.hide_block(block, p_.get());
    if (!block_.mask.has_bits()) return;
    hide_bits(block_.mask, run, block, job_.positions.data() + query, tile.count(), p_.get());
  }

  const BackwardJob<Element>& job_;
  const Block<Element>& block_;
  const Channels<Real> channels_;
  WideRows<Element> keys_, values_;      ///< of the block at hand
  PaddedRows<Real> q_rows_, dout_rows_;  ///< of the queries at hand
  PaddedRows<Real> dk_, dv_;             ///< of the block at hand
  AlignedArray<Real> p_, ds_;            ///< (keys of a block, lanes)
  AlignedArray<Real> slopes_;            ///< of soft-capping, the same; none where it is absent
  std::vector<GradientTile<Real>> tiles_;
  std::vector<TileModifiers<Real>> modifiers_;  ///< of the tiles
  std::size_t used_ = 0;
};

/// backward_block() on this target.
template <class Element>
void backward_heads(const Block<Element>& block, const QueryGradients<Element>& given,
                    const BlockGradients<Element>& sums) {
  const BackwardJob<Element> job{
      .block = block, .given = given, .sums = sums, .positions = block.queries.to_list()};
  share_out_slices(block, job.positions, BackwardWorker<Element>::rows_at_once(block),
                   [&] { return BackwardWorker<Element>(job); });
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
