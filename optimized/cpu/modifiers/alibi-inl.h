// ALiBi: scores fall with the distance between query and key. Included once per target.
#if defined(RINGLAB_CPU_ALIBI_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_ALIBI_INL_H_
#undef RINGLAB_CPU_ALIBI_INL_H_
#else
#define RINGLAB_CPU_ALIBI_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/product_tile-inl.h"
#include "reference/core/positions.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// Distances of a tile's queries from keys.
template <class Real>
class DistanceLanes {
 public:
  DistanceLanes()
      : queries_(static_cast<std::size_t>(tile_width<Real>())),
        apart_(aligned_array<Real>(tile_width<Real>())) {}

  /// Loads the queries of a tile, which stand at `queries`[…] + shift among the keys; lanes from
  /// `count` on repeat the last.
  void load(const std::int64_t* queries, std::int64_t count, std::int64_t shift) {
    for (std::int64_t lane = 0; lane < tile_width<Real>(); ++lane) {
      queries_[static_cast<std::size_t>(lane)] = queries[std::min(lane, count - 1)] + shift;
    }
    const auto [least, most] = std::minmax_element(queries_.begin(), queries_.end());
    least_ = *least;
    most_ = *most;
  }

  /// scores (keys.count, lanes) -= slope · |query - key|. Distances are exact and are rounded once,
  /// however large they are.
  void subtract(Real slope, const PositionRun& keys, Real* HWY_RESTRICT scores) {
    const std::int64_t last = keys.first + (keys.count - 1) * keys.stride;
    if (most_ - keys.first <= kFar && last - least_ <= kFar) {
      subtract_near(slope, keys, scores);
    } else {
      subtract_far(slope, keys, scores);
    }
  }

 private:
  /// The largest distance that is counted in Real without rounding, and its steps, too: a step is
  /// at most the sum of the distances at its ends.
  static constexpr std::int64_t kFar = std::int64_t{1} << (std::numeric_limits<Real>::digits - 1);

  HWY_NOINLINE void subtract_near(Real slope, const PositionRun& keys, Real* HWY_RESTRICT scores) {
    const hn::ScalableTag<Real> d;
    for (std::int64_t lane = 0; lane < tile_width<Real>(); ++lane) {
      apart_[static_cast<std::size_t>(lane)] =
          static_cast<Real>(queries_[static_cast<std::size_t>(lane)] - keys.first);
    }
    const auto step = hn::Set(d, static_cast<Real>(keys.stride)), by = hn::Set(d, slope);
    for (int x = 0; x < kTileVectors; ++x) {
      auto apart = hn::Load(d, apart_.get() + x * lanes<Real>());
      for (std::int64_t j = 0; j < keys.count; ++j) {
        Real* const at = scores + j * tile_width<Real>() + x * lanes<Real>();
        hn::Store(hn::NegMulAdd(by, hn::Abs(apart), hn::Load(d, at)), d, at);
        apart = hn::Sub(apart, step);
      }
    }
  }
  HWY_NOINLINE void subtract_far(Real slope, const PositionRun& keys, Real* HWY_RESTRICT scores) {
    for (std::int64_t j = 0; j < keys.count; ++j) {
      const std::int64_t key = keys.first + j * keys.stride;
      for (std::int64_t lane = 0; lane < tile_width<Real>(); ++lane) {
        const std::int64_t apart = std::abs(queries_[static_cast<std::size_t>(lane)] - key);
        scores[j * tile_width<Real>() + lane] -= slope * static_cast<Real>(apart);
      }
    }
  }

  std::vector<std::int64_t> queries_;  ///< (lanes)
  AlignedArray<Real> apart_;           ///< (lanes) query - first key
  std::int64_t least_ = 0, most_ = 0;
};

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
