// One tile of queries against one block of keys, backward. Included once per target.
#if defined(RINGLAB_CPU_BACKWARD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_BACKWARD_TILE_INL_H_
#undef RINGLAB_CPU_BACKWARD_TILE_INL_H_
#else
#define RINGLAB_CPU_BACKWARD_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/base_2.h"
#include "optimized/cpu/lanes-inl.h"
#include "optimized/cpu/panel-inl.h"
#include "optimized/cpu/tile_memory-inl.h"
#include "optimized/cpu/wide_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// scores -> P in place, dp -> dS in place: P = 2^(score - lse), dS = P (dP - delta), both 0 for
/// keys that are not seen, whatever their dP is. score, lse in base 2. lse, delta: (lanes); scores,
/// dp: (count, lanes).
template <class Real>
HWY_INLINE void differentiate(const Real* lse, const Real* delta, std::int64_t count,
                              Real* HWY_RESTRICT scores, Real* HWY_RESTRICT dp) {
  const hn::ScalableTag<Real> d;
  const std::int64_t n = lanes<Real>(), width = tile_width<Real>();
  const auto hidden = hn::Set(d, -std::numeric_limits<Real>::infinity());
  const Exp2<decltype(d)> exp2(d);
  for (int x = 0; x < kTileVectors; ++x) {
    const auto row_lse = hn::Load(d, lse + x * n), row_delta = hn::Load(d, delta + x * n);
    for (std::int64_t j = 0; j < count; ++j) {
      Real* const score = scores + j * width + x * n;
      Real* const change = dp + j * width + x * n;
      const auto s = hn::Load(d, score);
      // P of a hidden score is 0, also where the row's lse is NaN.
      const auto p = hn::IfThenZeroElse(hn::Eq(s, hidden), exp2(hn::Sub(s, row_lse)));
      const auto ds = hn::Mul(p, hn::Sub(hn::Load(d, change), row_delta));
      hn::Store(p, d, score);
      hn::Store(hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), ds), d, change);
    }
  }
}

/// Dense rows as whole aligned vectors, ended by zeros; infinities and NaN are kept apart.
template <class Real>
class PaddedRows {
 public:
  PaddedRows(std::int64_t most_rows, std::int64_t channels)
      : most_(most_rows),
        channels_(channels),
        vectors_((channels + lanes<Real>() - 1) / lanes<Real>()),
        values_(aligned_array<Real>(most_ * stride())) {
    std::fill(values_.get(), values_.get() + most_ * stride(), Real(0));
  }
  std::int64_t stride() const { return vectors_ * lanes<Real>(); }
  std::int64_t vectors() const { return vectors_; }
  Panel<Real> panel(std::int64_t row) { return {values_.get() + row * stride(), stride()}; }
  Panel<const Real> panel(std::int64_t row) const {
    return {values_.get() + row * stride(), stride()};
  }

  /// Rows 0 … rows-1; those after them are zeros.
  template <class From>
  void load(const From* from, std::int64_t rows) {
    for (std::int64_t row = 0; row < rows; ++row) {
      widen_all(from + row * channels_, channels_, values_.get() + row * stride());
    }
    std::fill(values_.get() + rows * stride(), values_.get() + most_ * stride(), Real(0));
  }
  void make_finite() {
    specials_.clear();
    if (all_finite(values_.get(), most_ * stride())) return;
    specials_ = set_specials_apart(values_.get(), most_, channels_, stride());
  }
  void store(Real* to, std::int64_t rows) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      const Real* const from = values_.get() + row * stride();
      std::copy(from, from + channels_, to + row * channels_);
    }
  }
  const std::vector<Special<Real>>& specials() const { return specials_; }

 private:
  std::int64_t most_, channels_, vectors_;
  AlignedArray<Real> values_;
  std::vector<Special<Real>> specials_;
};

/// sums (keys, channels) += Σ over the tile's lanes of weights (keys, lanes)ᵀ times rows
/// `first_row` … of `rows`.
template <class Real>
HWY_INLINE void add_over_queries(const Real* weights, std::int64_t keys,
                                 const PaddedRows<Real>& rows, std::int64_t first_row,
                                 const Panel<Real>& sums) {
  const std::int64_t width = tile_width<Real>();
  add_panel(RowFactors<Real>{weights, width}, keys, rows.panel(first_row), width, sums,
            rows.vectors());
  for (const Special<Real>& special : rows.specials()) {
    const std::int64_t lane = special.row - first_row;
    if (lane < 0 || lane >= width) continue;
    for (std::int64_t j = 0; j < keys; ++j) {
      const Real weight = weights[j * width + lane];
      if (weight != 0) sums.values[j * sums.stride + special.channel] += weight * special.value;
    }
  }
}

/// The rows that a tile of queries brings to the backward pass, and its dQ.
template <class Real>
class GradientTile {
 public:
  explicit GradientTile(const Channels<Real>& channels)
      : channels_(channels),
        values_(aligned_array<Real>((2 * channels.head_dim + channels.v_dim + 2) *
                                    tile_width<Real>())) {
    const std::int64_t width = tile_width<Real>();
    tile_.queries = values_.get();
    dq_ = values_.get() + channels.head_dim * width;
    lse_ = values_.get() + 2 * channels.head_dim * width;
    delta_ = lse_ + width;
    douts_ = delta_ + width;
  }

  template <class Element>
  struct GivenRows {
    const Element *q, *dout;
    const Real *lse, *delta;
    const std::int64_t* positions;
    std::int64_t count;
  };
  /// Lanes beyond the rows repeat the last one with an lse of +inf: their P is 0.
  template <class Element>
  void load(const GivenRows<Element>& rows, const Mask& mask) {
    const std::int64_t width = tile_width<Real>();
    count_ = rows.count;
    sight_.load(rows.positions, mask, rows.count);
    into_lanes(rows.q, rows.count, channels_.head_dim, tile_.queries);
    into_lanes(rows.dout, rows.count, channels_.v_dim, douts_);
    for (std::int64_t lane = 0; lane < width; ++lane) {
      const std::int64_t row = std::min(lane, rows.count - 1);
      const Real lse = in_base_2(rows.lse[row]);
      // A row that sees nothing has an lse of -inf, and -inf - (-inf) is no number.
      lse_[lane] = lane < rows.count && lse != kEmptyRowMax<Real> ? lse : -kEmptyRowMax<Real>;
      delta_[lane] = rows.delta[row];
    }
    std::fill(dq_, dq_ + channels_.head_dim * width, Real(0));
  }
  /// Adds the tile's dQ to its rows of the block's.
  void add_to(Real* dq) const { out_of_lanes<Leave::adding>(dq_, count_, channels_.head_dim, dq); }
  void look_at(const PositionRun& run) { sight_.look_at(run, count_, tile_); }
  const TileView& view() const { return tile_.view; }
  std::int64_t count() const { return count_; }

  /// Scores of the block: (block.count, lanes), in base 2.
  void score_block(const KeyBlock<Real>& block, Real* scores) const {
    score(tile_, block, channels_, scores);
  }
  void hide_block(const KeyBlock<Real>& block, Real* scores) const {
    hide(tile_, block, whole(block.count), scores);
  }
  /// dP = dO Vᵀ of the block: (block.count, lanes).
  void multiply_values(const KeyBlock<Real>& block, Real* dp) const {
    multiply<Result::replaced>(block.v.by_row(), block.count, static_cast<const Real*>(douts_),
                               channels_.v_dim, dp);
  }
  /// Scores become P, dP becomes dS.
  void differentiate_block(std::int64_t count, Real* p, Real* ds) const {
    differentiate(lse_, delta_, count, p, ds);
  }
  /// dQ += dS K; `finite_k` are the block's keys without what WideRows set apart.
  void add_dq(const Rows<Real>& finite_k, std::int64_t count, const Real* ds) {
    multiply<Result::added>(finite_k.by_number(), channels_.head_dim, ds, count, dq_);
  }
  Real* dq() { return dq_; }

 private:
  Channels<Real> channels_;
  AlignedArray<Real> values_;
  TileSight<Real> sight_;
  QueryTile<Real> tile_ = {};
  Real *douts_ = nullptr, *dq_ = nullptr, *lse_ = nullptr, *delta_ = nullptr;
  std::int64_t count_ = 0;
};

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
