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

#include <algorithm>
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
  std::int64_t ends[kTileVectors] = {};  ///< no query of vector x sees rows of the run from ends[x]
};

/// Rows first … first+count-1 of a run of keys.
template <class Real>
struct KeyBlock {
  Rows<Real> k;  ///< (count, head_dim)
  Rows<Real> v;  ///< (count, v_dim), finite
  std::int64_t first;
  std::int64_t count;
};

/// Counts of keys, from the first of a block: `of` each vector those that its queries go through,
/// `together` those that all vectors do. On the diagonal the first vectors end before the last.
struct Reach {
  std::int64_t together;
  std::int64_t of[kTileVectors];
};

/// Reach of vectors that all go through all `count` keys.
HWY_INLINE Reach whole(std::int64_t count) {
  Reach reach{.together = count, .of = {}};
  for (std::int64_t& keys : reach.of) keys = count;
  return reach;
}

template <class Real>
HWY_INLINE Reach reach_of(const QueryTile<Real>& tile, const KeyBlock<Real>& block) {
  Reach reach = whole(block.count);
  for (int x = 0; kVectorsGoAlone && x < kTileVectors; ++x) {
    reach.of[x] = std::clamp<std::int64_t>(tile.ends[x] - block.first, 0, block.count);
    reach.together = std::min(reach.together, reach.of[x]);
  }
  return reach;
}

/// Calls visit(x, keys, lanes_at) for each vector that goes on alone: its keys, and the place in
/// scores of its lanes of the first key.
template <class Real, class Visit>
HWY_INLINE void for_each_alone(const Reach& reach, const Visit& visit) {
  for (int x = 0; kVectorsGoAlone && x < kTileVectors; ++x) {
    const std::int64_t keys = reach.of[x] - reach.together;
    if (keys > 0) visit(x, keys, reach.together * tile_width<Real>() + x * lanes<Real>());
  }
}

template <class Real>
struct Channels {
  std::int64_t head_dim, v_dim;
  Real score_unit;  ///< scale · log2 e: scores are in base 2
};

/// Hides the scores of keys that a lane's query does not see.
template <class Real>
HWY_INLINE void hide_unseen(const QueryTile<Real>& tile, std::int64_t first, const Reach& reach,
                            Real* HWY_RESTRICT scores) {
  const hn::ScalableTag<Real> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto hidden = hn::Set(d, -std::numeric_limits<Real>::infinity());
  for (int x = 0; x < kTileVectors; ++x) {
    const auto from = hn::Load(di, tile.first + x * lanes<Real>());
    const auto to = hn::Load(di, tile.last + x * lanes<Real>());
    for (std::int64_t j = 0; j < reach.of[x]; ++j) {
      Real* const at = scores + j * tile_width<Real>() + x * lanes<Real>();
      const auto row = hn::Set(di, static_cast<Index<Real>>(first + j));
      const auto seen = hn::RebindMask(d, hn::AndNot(hn::Lt(row, from), hn::Lt(row, to)));
      hn::Store(hn::IfThenElse(seen, hn::Load(d, at), hidden), d, at);
    }
  }
}

/// The largest score of each query of some vectors; takes in scores one vector at a time.
template <class Real, int kVectors = kTileVectors>
struct Tops {
  HWY_INLINE Tops() {
    const hn::ScalableTag<Real> d;
    for (auto& top : of) top = hn::Set(d, -std::numeric_limits<Real>::infinity());
  }
  HWY_INLINE void operator()(int x, Vector<Real> score) { of[x] = hn::Max(of[x], score); }
  Vector<Real> of[kVectors];
};

/// The largest score of each query.
template <class Real>
HWY_INLINE Tops<Real> find_tops(const Real* HWY_RESTRICT scores, const Reach& reach) {
  const hn::ScalableTag<Real> d;
  Tops<Real> tops;
  for (int x = 0; x < kTileVectors; ++x) {
    for (std::int64_t j = 0; j < reach.of[x]; ++j) {
      tops(x, hn::Load(d, scores + j * tile_width<Real>() + x * lanes<Real>()));
    }
  }
  return tops;
}

/// scores -> weights in place for one vector of queries, which goes through `count` keys of a block
/// of `all`, and whose largest scores are `block_top`; other keys get weights of 0. Returns the
/// factor for earlier sums. Rows that have seen nothing keep their state.
template <class Real>
HWY_INLINE Vector<Real> weigh(QueryTile<Real>& tile, int x, Vector<Real> block_top,
                              std::int64_t count, std::int64_t all, Real* HWY_RESTRICT scores) {
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
  for (; j < all; ++j) hn::Store(hn::Zero(d), d, at + j * width);
  hn::Store(sum, d, tile.row_sum + x * n);
  return keep;
}

/// Scales products to scores before they leave the registers.
template <class Real>
struct IntoScores : JustProducts {
  Vector<Real> unit;
  HWY_INLINE Vector<Real> end(int, int, Vector<Real> product) const {
    return hn::Mul(product, unit);
  }
};

/// Scales products as IntoScores does, and finds the largest scores.
template <class Real, int kVectors = kTileVectors>
struct IntoScoresAndTops : JustProducts {
  Vector<Real> unit;
  Tops<Real, kVectors> tops = {};
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

/// The scores of vector x and `count` rows of keys; returns the largest.
template <class Real>
HWY_NOINLINE Vector<Real> score_alone(const QueryTile<Real>& tile, int x, const Rows<Real>& keys,
                                      std::int64_t count, const Channels<Real>& channels,
                                      Real* HWY_RESTRICT scores) {
  IntoScoresAndTops<Real, 1> into{{}, hn::Set(hn::ScalableTag<Real>(), channels.score_unit)};
  const Real* const queries = tile.queries + x * lanes<Real>();
  multiply<Result::replaced, 1>(keys.by_row(), count, queries, channels.head_dim, scores, into);
  return into.tops.of[0];
}

/// score() for the keys that each vector goes through, and the largest score of each query.
template <class Real>
HWY_INLINE Tops<Real> score_and_find_tops(const QueryTile<Real>& tile, const KeyBlock<Real>& block,
                                          const Reach& reach, const Channels<Real>& channels,
                                          Real* HWY_RESTRICT scores) {
  const KeyBlock<Real> together{block.k, block.v, block.first, reach.together};
  Tops<Real> tops = score<Real, IntoScoresAndTops<Real>>(tile, together, channels, scores).tops;
  for_each_alone<Real>(reach, [&](int x, std::int64_t keys, std::int64_t lanes_at) HWY_ATTR {
    tops(x, score_alone(tile, x, block.k.from(reach.together), keys, channels, scores + lanes_at));
  });
  return tops;
}

/// True when there is a query that does not see the block whole.
template <class Real>
HWY_INLINE bool hides_some(const QueryTile<Real>& tile, const KeyBlock<Real>& block) {
  return block.first < tile.view.all.first || block.first + block.count > tile.view.all.last;
}

/// Hides the scores of a block that not every query of the tile sees whole.
template <class Real>
HWY_INLINE void hide(const QueryTile<Real>& tile, const KeyBlock<Real>& block, const Reach& reach,
                     Real* HWY_RESTRICT scores) {
  if (hides_some(tile, block)) hide_unseen(tile, block.first, reach, scores);
}

/// The factor of the accumulator before it takes a block in, applied by every register tile that
/// has just loaded its sums, since a pass of its own would load and store them once more.
template <class Real, int kVectors = kTileVectors>
struct Rescaling : JustProducts {
  HWY_INLINE Rescaling() {}  // an implicit one may not call functions compiled for this target
  Vector<Real> keep[kVectors];
  bool needed;  ///< whether any maximum rose

  template <class Sums>
  HWY_INLINE void begin(Sums& sums) const {
    if (!needed) return;
    for (auto& row : sums) {
      for (int x = 0; x < kVectors; ++x) row[x] = hn::Mul(row[x], keep[x]);
    }
  }
};

/// Turns scores into weights, in place, and takes them into the maxima and sums of the tile's
/// queries; `tops` are the largest scores. Returns the rescaling for add_weighted().
template <class Real>
HWY_INLINE Rescaling<Real> take_in_weights(QueryTile<Real>& tile, const Tops<Real>& tops,
                                           const Reach& reach, std::int64_t count,
                                           Real* HWY_RESTRICT scores) {
  const hn::ScalableTag<Real> d;
  Rescaling<Real> rescaling;
  bool rescale = false;
  for (int x = 0; x < kTileVectors; ++x) {
    rescaling.keep[x] = weigh(tile, x, tops.of[x], reach.of[x], count, scores);
    rescale |= !hn::AllTrue(d, hn::Eq(rescaling.keep[x], hn::Set(d, Real(1))));
  }
  rescaling.needed = rescale;
  return rescaling;
}

/// acc = acc · rescaling + weights · values for a vector of queries and `count` keys.
template <class Real>
HWY_NOINLINE void add_weighted_alone(Real* HWY_RESTRICT acc, const Rows<Real>& values,
                                     std::int64_t count, std::int64_t v_dim,
                                     const Rescaling<Real, 1>& rescaling,
                                     const Real* HWY_RESTRICT weights) {
  multiply<Result::added, 1>(values.by_number(), v_dim, weights, count, acc, rescaling);
}

/// acc = acc · rescaling + weights · values, for the keys that each vector goes through.
template <class Real>
HWY_INLINE void add_weighted(QueryTile<Real>& tile, const KeyBlock<Real>& block, const Reach& reach,
                             std::int64_t v_dim, const Rescaling<Real>& rescaling,
                             const Real* HWY_RESTRICT weights) {
  if (reach.together > 0) {
    multiply<Result::added>(block.v.by_number(), v_dim, weights, reach.together, tile.acc,
                            rescaling);
  }
  for_each_alone<Real>(reach, [&](int x, std::int64_t keys, std::int64_t lanes_at) HWY_ATTR {
    Rescaling<Real, 1> of_vector;
    of_vector.keep[0] = rescaling.keep[x];
    of_vector.needed = rescaling.needed && reach.together == 0;
    add_weighted_alone(tile.acc + x * lanes<Real>(), block.v.from(reach.together), keys, v_dim,
                       of_vector, weights + lanes_at);
  });
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
