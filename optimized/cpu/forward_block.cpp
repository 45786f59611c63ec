#include <cmath>
#include <limits>

#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/key_tile.h"
#include "reference/core/small_float.h"

namespace ringlab::cpu {
namespace {

/// One head of a block, tile by tile.
template <class Element>
class ForwardHead {
 public:
  using Real = Accumulator<Element>;

  explicit ForwardHead(const Block<Element>& block)
      : block_(block),
        d_(block.q.extents.channels),
        dv_(block.v.extents.channels),
        stride_(block.tiles.keys),
        tile_mask_(block.mask, stride_),
        queries_(block.queries.to_list()),
        keys_(size(stride_ * d_)),
        values_(size(stride_ * dv_)),
        query_(size(d_)),
        scores_(size(stride_)) {}

  void run(const Element* q, const Element* k, const Element* v, SoftmaxState<Real>* states,
           Real* accs) {
    const std::int64_t rows = block_.q.extents.tokens, keys = block_.k.extents.tokens;
    for (std::int64_t first = 0; first < keys; first += stride_) {
      const KeyRange tile{first, std::min(stride_, keys - first)};
      tile_mask_.load(block_.keys, tile);
      transpose(k + first * d_, tile.count, d_, stride_, keys_.data());
      widen(v + first * dv_, tile.count * dv_, values_.data());
      for (std::int64_t row = 0; row < rows; ++row) {
        take_in(q + row * d_, queries_[static_cast<std::size_t>(row)], states[row],
                accs + row * dv_);
      }
    }
  }

 private:
  static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

  /// One row: scores of the tile, one rescale, weighted values.
  void take_in(const Element* q, std::int64_t query, SoftmaxState<Real>& state, Real* acc) {
    const KeyRange seen = tile_mask_.seen_by(query);
    if (seen.count == 0) return;
    widen(q, d_, query_.data());
    dot_all(query_.data(), keys_.data(), d_, seen, stride_, scores_.data());
    const Real top = mask_and_scale(query, seen, state.row_max);
    const Real keep = rescale_factor(state.row_max, top);
    state.row_max = top;
    state.row_sum *= keep;
    for (std::int64_t c = 0; c < dv_; ++c) acc[c] *= keep;
    for (std::int64_t j = seen.first; j < seen.first + seen.count; ++j) {
      const Real weight = rescale_factor(scores_[static_cast<std::size_t>(j)], top);
      if (weight == 0) continue;  // masked, or too small to count: its value may be anything
      state.row_sum += weight;
      add_scaled(acc, weight, values_.data() + j * dv_, dv_);
    }
  }

  /// Scales the scores, hides what the row does not see, and returns the new row maximum.
  Real mask_and_scale(std::int64_t query, KeyRange seen, Real top) {
    const KeyInterval visible = tile_mask_.visible(query);
    for (std::int64_t j = seen.first; j < seen.first + seen.count; ++j) {
      Real& score = scores_[static_cast<std::size_t>(j)];
      score = tile_mask_.sees(query, visible, j) ? Real(block_.scale) * score : kEmptyRowMax<Real>;
      if (score > top || score != score) top = score;
    }
    return top;
  }

  const Block<Element>& block_;
  const std::int64_t d_, dv_, stride_;
  TileMask tile_mask_;
  const std::vector<std::int64_t> queries_;
  std::vector<Real> keys_;    // (head_dim, tile)
  std::vector<Real> values_;  // (tile, v_dim)
  std::vector<Real> query_, scores_;
};

}  // namespace

template <class Element>
void forward_block(const Block<Element>& block, SoftmaxState<Accumulator<Element>>* states,
                   Accumulator<Element>* accs) {
  ForwardHead<Element> head(block);
  const Extents &q = block.q.extents, &k = block.k.extents, &v = block.v.extents;
  const std::int64_t group = q.heads / k.heads;
  for (std::int64_t h = 0; h < q.batch * q.heads; ++h) {
    head.run(block.q.data + h * q.tokens * q.channels,
             block.k.data + h / group * k.tokens * k.channels,
             block.v.data + h / group * v.tokens * v.channels, states + h * q.tokens,
             accs + h * q.tokens * v.channels);
  }
}

template void forward_block(const Block<double>&, SoftmaxState<double>*, double*);
template void forward_block(const Block<float>&, SoftmaxState<float>*, float*);
template void forward_block(const Block<Half>&, SoftmaxState<float>*, float*);
template void forward_block(const Block<BFloat16>&, SoftmaxState<float>*, float*);

}  // namespace ringlab::cpu
