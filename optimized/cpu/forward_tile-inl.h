// One tile of queries against one block of keys, lanes along queries. Included once per target.
//
// Lane i of every vector belongs to query i of the tile, so row maxima and row sums are plain
// vectors and nothing is ever reduced across lanes. Scores are keys × queries, the accumulator is
// channels × queries; K and V are read as they lie in memory, one number at a time.
#if defined(RINGLAB_CPU_FORWARD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_FORWARD_TILE_INL_H_
#undef RINGLAB_CPU_FORWARD_TILE_INL_H_
#else
#define RINGLAB_CPU_FORWARD_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "optimized/cpu/product_tile-inl.h"
#include "optimized/cpu/vector_exp2-inl.h"
#include "optimized/cpu/visible_rows.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

template <class Real>
using Index = hwy::MakeSigned<Real>;  // as wide as a lane

/// The queries of a tile and their running state; all arrays aligned, tile_width() lanes a row.
template <class Real>
struct QueryTile {
  Real* queries;       ///< (head_dim, lanes)
  Real* row_max;       ///< (lanes)
  Real* row_sum;       ///< (lanes)
  Real* acc;           ///< (v_dim, lanes)
  Index<Real>* first;  ///< (lanes) rows of the run that the lane's query sees: first …
  Index<Real>* last;   ///< … last-1
  TileView view = {};
};

/// Rows first … first+count-1 of a run of keys.
template <class Real>
struct KeyBlock {
  const Real* k;  ///< (count, head_dim), dense
  const Real* v;  ///< (count, v_dim), dense and finite
  std::int64_t first;
  std::int64_t count;
};

template <class Real>
struct Channels {
  std::int64_t head_dim, v_dim;
  Real score_unit;  ///< scale · log2 e: scores are in base 2
};

/// Hides the scores of keys that a lane's query does not see.
template <class Real>
HWY_INLINE void hide_unseen(const QueryTile<Real>& tile, std::int64_t first, std::int64_t count,
                            Real* HWY_RESTRICT scores) {
  const hn::ScalableTag<Real> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto hidden = hn::Set(d, -std::numeric_limits<Real>::infinity());
  for (int x = 0; x < kTileVectors; ++x) {
    const auto from = hn::Load(di, tile.first + x * lanes<Real>());
    const auto to = hn::Load(di, tile.last + x * lanes<Real>());
    for (std::int64_t j = 0; j < count; ++j) {
      Real* const at = scores + j * tile_width<Real>() + x * lanes<Real>();
      const auto row = hn::Set(di, static_cast<Index<Real>>(first + j));
      const auto seen = hn::RebindMask(d, hn::AndNot(hn::Lt(row, from), hn::Lt(row, to)));
      hn::Store(hn::IfThenElse(seen, hn::Load(d, at), hidden), d, at);
    }
  }
}

/// scores -> weights in place for one vector of queries; returns the factor for what was summed
/// before. Rows that have seen nothing keep their state.
template <class Real>
HWY_INLINE Vector<Real> weigh(QueryTile<Real>& tile, int x, std::int64_t count,
                              Real* HWY_RESTRICT scores) {
  const hn::ScalableTag<Real> d;
  const std::int64_t n = lanes<Real>(), width = tile_width<Real>();
  Real* const at = scores + x * n;
  const auto before = hn::Load(d, tile.row_max + x * n);
  auto top = before, other = before;
  std::int64_t j = 0;
  for (; j + 2 <= count; j += 2) {
    top = hn::Max(top, hn::Load(d, at + j * width));
    other = hn::Max(other, hn::Load(d, at + (j + 1) * width));
  }
  if (j < count) top = hn::Max(top, hn::Load(d, at + j * width));
  top = hn::Max(top, other);
  hn::Store(top, d, tile.row_max + x * n);
  // (-inf) - (-inf) must not happen: a row without keys is measured from 0.
  const auto none = hn::Set(d, -std::numeric_limits<Real>::infinity());
  const auto base = hn::IfThenZeroElse(hn::Eq(top, none), top);
  const Exp2<decltype(d)> exp2(d);
  const auto keep = exp2(hn::Sub(before, base));
  auto sum = hn::Mul(hn::Load(d, tile.row_sum + x * n), keep);
  for (j = 0; j < count; ++j) {
    const auto weight = exp2(hn::Sub(hn::Load(d, at + j * width), base));
    hn::Store(weight, d, at + j * width);
    sum = hn::Add(sum, weight);
  }
  hn::Store(sum, d, tile.row_sum + x * n);
  return keep;
}

/// scores (block.count, lanes) of the block, in base 2.
template <class Real>
HWY_INLINE void score(const QueryTile<Real>& tile, const KeyBlock<Real>& block,
                      const Channels<Real>& channels, Real* HWY_RESTRICT scores) {
  multiply<Result::scaled>(Factors<SideBySide::terms, Real>{block.k, channels.head_dim},
                           block.count, tile.queries, channels.head_dim, channels.score_unit,
                           scores);
}

/// Hides the scores of a block that not every query of the tile sees whole.
template <class Real>
HWY_INLINE void hide(const QueryTile<Real>& tile, const KeyBlock<Real>& block,
                     Real* HWY_RESTRICT scores) {
  if (block.first < tile.view.all.first || block.first + block.count > tile.view.all.last) {
    hide_unseen(tile, block.first, block.count, scores);
  }
}

/// Turns scores into weights, in place, and takes them into the maxima and sums of the tile's
/// queries. The accumulator is rescaled only when a maximum rose.
template <class Real>
HWY_INLINE void take_in_weights(QueryTile<Real>& tile, const KeyBlock<Real>& block,
                                const Channels<Real>& channels, Real* HWY_RESTRICT scores) {
  const hn::ScalableTag<Real> d;
  const std::int64_t n = lanes<Real>(), width = tile_width<Real>();
  Vector<Real> keep[kTileVectors];
  bool rescale = false;
  for (int x = 0; x < kTileVectors; ++x) {
    keep[x] = weigh(tile, x, block.count, scores);
    rescale |= !hn::AllTrue(d, hn::Eq(keep[x], hn::Set(d, Real(1))));
  }
  if (rescale) {
    for (std::int64_t c = 0; c < channels.v_dim; ++c) {
      for (int x = 0; x < kTileVectors; ++x) {
        Real* const at = tile.acc + c * width + x * n;
        hn::Store(hn::Mul(hn::Load(d, at), keep[x]), d, at);
      }
    }
  }
}

/// acc += weights · values.
template <class Real>
HWY_INLINE void add_weighted(QueryTile<Real>& tile, const KeyBlock<Real>& block,
                             const Channels<Real>& channels, const Real* HWY_RESTRICT weights) {
  multiply<Result::added>(Factors<SideBySide::rows, Real>{block.v, channels.v_dim}, channels.v_dim,
                          weights, block.count, Real(1), tile.acc);
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
