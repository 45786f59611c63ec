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
  Rows<Real> k;  ///< (count, head_dim)
  Rows<Real> v;  ///< (count, v_dim), finite
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

/// The largest score of each query of a tile; takes scores one by one.
template <class Real>
struct Tops {
  HWY_INLINE Tops() {
    const hn::ScalableTag<Real> d;
    for (auto& top : of) top = hn::Set(d, -std::numeric_limits<Real>::infinity());
  }
  HWY_INLINE void operator()(int x, Vector<Real> score) { of[x] = hn::Max(of[x], score); }
  Vector<Real> of[kTileVectors];
};

/// The largest of scores (count, lanes), per lane.
template <class Real>
HWY_INLINE Tops<Real> find_tops(const Real* HWY_RESTRICT scores, std::int64_t count) {
  const hn::ScalableTag<Real> d;
  Tops<Real> tops;
  for (std::int64_t j = 0; j < count; ++j) {
    for (int x = 0; x < kTileVectors; ++x) {
      tops(x, hn::Load(d, scores + j * tile_width<Real>() + x * lanes<Real>()));
    }
  }
  return tops;
}

/// scores -> weights in place for one vector of queries whose largest score of the block is
/// `block_top`; returns the factor for what was summed before. Rows that have seen nothing keep
/// their state.
template <class Real>
HWY_INLINE Vector<Real> weigh(QueryTile<Real>& tile, int x, Vector<Real> block_top,
                              std::int64_t count, Real* HWY_RESTRICT scores) {
  const hn::ScalableTag<Real> d;
  const std::int64_t n = lanes<Real>(), width = tile_width<Real>();
  Real* const at = scores + x * n;
  const auto before = hn::Load(d, tile.row_max + x * n);
  const auto top = hn::Max(before, block_top);
  hn::Store(top, d, tile.row_max + x * n);
  // (-inf) - (-inf) must not happen: a row without keys is measured from 0.
  const auto none = hn::Set(d, -std::numeric_limits<Real>::infinity());
  const auto base = hn::IfThenZeroElse(hn::Eq(top, none), top);
  const Exp2<decltype(d)> exp2(d);
  const auto keep = exp2(hn::Sub(before, base));
  auto sum = hn::Mul(hn::Load(d, tile.row_sum + x * n), keep);
  constexpr int kAtOnce = kPowersAtOnce<Real>;
  std::int64_t j = 0;
  for (; j + kAtOnce <= count; j += kAtOnce) {
    Vector<Real> weights[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) {
      weights[i] = hn::Sub(hn::Load(d, at + (j + i) * width), base);
    }
    exp2.raise(weights);
    for (int i = 0; i < kAtOnce; ++i) {
      hn::Store(weights[i], d, at + (j + i) * width);
      sum = hn::Add(sum, weights[i]);
    }
  }
  for (; j < count; ++j) {
    const auto weight = exp2(hn::Sub(hn::Load(d, at + j * width), base));
    hn::Store(weight, d, at + j * width);
    sum = hn::Add(sum, weight);
  }
  hn::Store(sum, d, tile.row_sum + x * n);
  return keep;
}

/// Makes scores of products, on their way out of the registers.
template <class Real>
struct IntoScores : JustProducts {
  Vector<Real> unit;
  HWY_INLINE Vector<Real> end(int, int, Vector<Real> product) const {
    return hn::Mul(product, unit);
  }
};

/// Makes scores as IntoScores does, and takes the largest.
template <class Real>
struct IntoScoresAndTops : JustProducts {
  Vector<Real> unit;
  Tops<Real> tops = {};
  HWY_INLINE Vector<Real> end([[maybe_unused]] int row, int x, Vector<Real> product) {
    const auto score = hn::Mul(product, unit);
    tops(x, score);
    return score;
  }
};

/// scores (block.count, lanes) of the block, in base 2.
template <class Real, class Into = IntoScores<Real>>
HWY_INLINE Into score(const QueryTile<Real>& tile, const KeyBlock<Real>& block,
                      const Channels<Real>& channels, Real* HWY_RESTRICT scores) {
  Into into{{}, hn::Set(hn::ScalableTag<Real>(), channels.score_unit)};
  const Real* const queries = tile.queries;
  multiply<Result::replaced>(block.k.by_row(), block.count, queries, channels.head_dim, scores,
                             into);
  return into;
}

/// score(), and the largest score of each query.
template <class Real>
HWY_INLINE Tops<Real> score_and_find_tops(const QueryTile<Real>& tile, const KeyBlock<Real>& block,
                                          const Channels<Real>& channels,
                                          Real* HWY_RESTRICT scores) {
  return score<Real, IntoScoresAndTops<Real>>(tile, block, channels, scores).tops;
}

/// True when there is a query that does not see the block whole.
template <class Real>
HWY_INLINE bool hides_some(const QueryTile<Real>& tile, const KeyBlock<Real>& block) {
  return block.first < tile.view.all.first || block.first + block.count > tile.view.all.last;
}

/// Hides the scores of a block that not every query of the tile sees whole.
template <class Real>
HWY_INLINE void hide(const QueryTile<Real>& tile, const KeyBlock<Real>& block,
                     Real* HWY_RESTRICT scores) {
  if (hides_some(tile, block)) hide_unseen(tile, block.first, block.count, scores);
}

/// The factor of the accumulator before it takes a block in, applied by every register tile that
/// has just loaded its sums, since a pass of its own would load and store them once more.
template <class Real>
struct Rescaling : JustProducts {
  HWY_INLINE Rescaling() {}  // an implicit one may not call what is compiled for this target
  Vector<Real> keep[kTileVectors];
  bool needed;  ///< whether any maximum rose

  template <class Sums>
  HWY_INLINE void begin(Sums& sums) const {
    if (!needed) return;
    for (auto& row : sums) {
      for (int x = 0; x < kTileVectors; ++x) row[x] = hn::Mul(row[x], keep[x]);
    }
  }
};

/// Turns scores into weights, in place, and takes them into the maxima and sums of the tile's
/// queries; `tops` are the largest scores. Returns what add_weighted() has to know.
template <class Real>
HWY_INLINE Rescaling<Real> take_in_weights(QueryTile<Real>& tile, const Tops<Real>& tops,
                                           std::int64_t count, Real* HWY_RESTRICT scores) {
  const hn::ScalableTag<Real> d;
  Rescaling<Real> rescaling;
  bool rescale = false;
  for (int x = 0; x < kTileVectors; ++x) {
    rescaling.keep[x] = weigh(tile, x, tops.of[x], count, scores);
    rescale |= !hn::AllTrue(d, hn::Eq(rescaling.keep[x], hn::Set(d, Real(1))));
  }
  rescaling.needed = rescale;
  return rescaling;
}

/// acc = acc · rescaling + weights · values.
template <class Real>
HWY_INLINE void add_weighted(QueryTile<Real>& tile, const KeyBlock<Real>& block, std::int64_t v_dim,
                             const Rescaling<Real>& rescaling, const Real* HWY_RESTRICT weights) {
  multiply<Result::added>(block.v.by_number(), v_dim, weights, block.count, tile.acc, rescaling);
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
