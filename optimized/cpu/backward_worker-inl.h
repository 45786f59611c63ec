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
#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// One K/V head of a block with all query heads that read it: nobody else adds to its dK and dV.
template <class Element>
class BackwardWorker {
 public:
  using Real = Accumulator<Element>;

  BackwardWorker(const Block<Element>& block, const QueryGradients<Element>& given,
                 const BlockGradients<Element>& sums, const std::vector<std::int64_t>& positions)
      : block_(block),
        given_(given),
        sums_(sums),
        positions_(positions),
        channels_{block.q.extents.channels, block.v.extents.channels, Real(block.scale)},
        keys_(block.tiles.keys, channels_.head_dim),
        values_(block.tiles.keys, channels_.v_dim),
        q_rows_(tile_count(block) * tile_width<Real>(), channels_.head_dim),
        dout_rows_(tile_count(block) * tile_width<Real>(), channels_.v_dim),
        dk_(block.tiles.keys, channels_.head_dim),
        dv_(block.tiles.keys, channels_.v_dim),
        p_(aligned_array<Real>(block.tiles.keys * tile_width<Real>())),
        ds_(aligned_array<Real>(block.tiles.keys * tile_width<Real>())) {
    for (std::int64_t i = 0; i < tile_count(block); ++i) tiles_.emplace_back(channels_);
  }

  void run(std::int64_t kv_head) {
    const std::int64_t group = block_.q.extents.heads / block_.k.extents.heads;
    const std::int64_t step = std::ssize(tiles_) * tile_width<Real>();
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (std::int64_t row = 0; row < block_.q.extents.tokens; row += step) {
        take_in_queries(head, row, std::min(step, block_.q.extents.tokens - row));
        meet_keys(kv_head, row);
        for (std::size_t i = 0; i < used_; ++i) {
          tiles_[i].add_to(sums_.dq + (head * block_.q.extents.tokens + row +
                                       static_cast<std::int64_t>(i) * tile_width<Real>()) *
                                          channels_.head_dim);
        }
      }
    }
  }

 private:
  static std::int64_t tile_count(const Block<Element>& block) {
    return tiles_for<Real>(block.tiles.queries, block.q.extents.tokens);
  }

  void take_in_queries(std::int64_t head, std::int64_t first, std::int64_t count) {
    const std::int64_t width = tile_width<Real>(), at = head * block_.q.extents.tokens + first;
    const Element* const q = block_.q.data + at * channels_.head_dim;
    const Element* const dout = given_.dout.data + at * channels_.v_dim;
    q_rows_.load(q, count);
    q_rows_.make_finite();
    dout_rows_.load(dout, count);
    dout_rows_.make_finite();
    used_ = static_cast<std::size_t>((count + width - 1) / width);
    for (std::size_t i = 0; i < used_; ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) * width;
      tiles_[i].load(
          typename GradientTile<Real>::template Rows<Element>{
              .q = q + row * channels_.head_dim,
              .dout = dout + row * channels_.v_dim,
              .lse = given_.lse + at + row,
              .delta = given_.delta + at + row,
              .positions = positions_.data() + first + row,
              .count = std::min(width, count - row)},
          block_.mask);
    }
  }

  void meet_keys(std::int64_t kv_head, std::int64_t first_query) {
    std::int64_t row = kv_head * block_.k.extents.tokens;
    for (const PositionRun& run : block_.keys.runs()) {
      for (std::size_t i = 0; i < used_; ++i) tiles_[i].look_at(run);
      for (std::int64_t first = 0; first < run.count; first += block_.tiles.keys) {
        meet_rows(run, {first, std::min(run.count, first + block_.tiles.keys)}, row, first_query);
      }
      row += run.count;
    }
  }

  /// `start`: row of K and V where the run begins.
  void meet_rows(const PositionRun& run, const RowRange& rows, std::int64_t start,
                 std::int64_t first_query) {
    const std::int64_t at = start + rows.first, count = rows.last - rows.first;
    Real* const dk = sums_.dk + at * channels_.head_dim;
    Real* const dv = sums_.dv + at * channels_.v_dim;
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

  /// The rows of `part` of a run, the first of which is row `skipped` of the block at hand.
  void meet_part(const PositionRun& run, const RowRange& part, std::int64_t skipped, std::size_t i,
                 std::int64_t first_query) {
    const std::int64_t count = part.last - part.first;
    const std::int64_t row = static_cast<std::int64_t>(i) * tile_width<Real>();
    GradientTile<Real>& tile = tiles_[i];
    const KeyBlock<Real> block{keys_.raw(skipped), values_.raw(skipped), part.first, count};
    tile.weigh_block(block, p_.get(), ds_.get());
    if (block_.mask.has_bits()) {
      hide_bits(block_.mask, run, block, positions_.data() + first_query + row, tile.count(),
                p_.get());
    }
    tile.differentiate_block(count, p_.get(), ds_.get());
    tile.add_dq(keys_.finite(skipped), count, ds_.get());
    keys_.add_specials(skipped, count, ds_.get(), tile.dq());
    add_over_queries<Real>(p_.get(), count, dout_rows_, row, dv_.panel(skipped));
    add_over_queries<Real>(ds_.get(), count, q_rows_, row, dk_.panel(skipped));
  }

  const Block<Element>& block_;
  const QueryGradients<Element>& given_;
  const BlockGradients<Element>& sums_;
  const std::vector<std::int64_t>& positions_;
  const Channels<Real> channels_;
  WideRows<Element> keys_, values_;      ///< of the block at hand
  PaddedRows<Real> q_rows_, dout_rows_;  ///< of the queries at hand
  PaddedRows<Real> dk_, dv_;             ///< of the block at hand
  AlignedArray<Real> p_, ds_;            ///< (keys of a block, lanes)
  std::vector<GradientTile<Real>> tiles_;
  std::size_t used_ = 0;
};

/// backward_block, on this target.
template <class Element>
void backward_heads(const Block<Element>& block, const QueryGradients<Element>& given,
                    const BlockGradients<Element>& sums) {
  const std::vector<std::int64_t> positions = block.queries.to_list();
  share_out(block.k.extents.batch * block.k.extents.heads, block.threads, [&] {
    return [worker = BackwardWorker<Element>(block, given, sums, positions)](
               std::int64_t kv_head) mutable { worker.run(kv_head); };
  });
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
