// Dropout of the weights of a tile, lanes along queries. Included once per target.
#if defined(RINGLAB_CPU_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_DROPOUT_INL_H_
#undef RINGLAB_CPU_DROPOUT_INL_H_
#else
#define RINGLAB_CPU_DROPOUT_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "optimized/cpu/aligned_array.h"
#include "optimized/cpu/modifiers/philox-inl.h"
#include "optimized/cpu/product_tile-inl.h"
#include "reference/core/modifiers.h"
#include "reference/core/positions.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// The lanes whose word is at least `least`.
template <class D>
HWY_INLINE hn::Mask<D> at_least(D d, const std::uint32_t* words, std::uint32_t least) {
  const hn::RebindToUnsigned<D> du;
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(std::uint32_t)) {
    const auto word = hn::Load(du, words);
    return hn::RebindMask(d, hn::Eq(hn::Max(word, hn::Set(du, least)), word));
  } else {
    const hn::RebindToSigned<D> di;  // where every word is positive
    const auto word = hn::PromoteTo(du, hn::Load(hn::Rebind<std::uint32_t, D>(), words));
    const auto below = hn::Lt(hn::BitCast(di, word), hn::Set(di, std::int64_t{least}));
    return hn::RebindMask(d, hn::Not(below));
  }
}

/// The pairs of a tile's queries with keys that are kept.
template <class Real>
class DropoutLanes {
 public:
  explicit DropoutLanes(const Modifiers& modifiers)
      : seed_(modifiers.dropout_seed),
        threshold_(dropout_threshold(modifiers.dropout)),
        factor_(static_cast<Real>(dropout_factor(modifiers.dropout))),
        width_((tile_width<Real>() + word_lanes() - 1) / word_lanes() * word_lanes()),
        queries_(aligned_array<std::uint32_t>(width_)),
        words_(aligned_array<std::uint32_t>(4 * width_)) {}

  /// Loads a tile's queries, by their numbers in the whole sequence; lanes from `count` on repeat
  /// the last.
  void load(std::int64_t batch, std::int64_t head, const std::int64_t* queries,
            std::int64_t count) {
    batch_ = static_cast<std::uint32_t>(batch);
    head_ = static_cast<std::uint32_t>(head);
    for (std::int64_t lane = 0; lane < width_; ++lane) {
      queries_[static_cast<std::size_t>(lane)] =
          static_cast<std::uint32_t>(queries[std::min(lane, count - 1)]);
    }
    known_ = kNone;
  }

  /// weights (keys.count, lanes): 0 where the pair is dropped, whatever it was, else times
  /// 1 / (1 - p).
  HWY_NOINLINE void drop(const PositionRun& keys, Real* HWY_RESTRICT weights) {
    const hn::ScalableTag<Real> d;
    const auto factor = hn::Set(d, factor_);
    std::int64_t key = keys.first;
    for (std::int64_t j = 0; j < keys.count; ++j, key += keys.stride) {
      know(key / 4);
      const std::uint32_t* const words = words_.get() + key % 4 * width_;
      for (int x = 0; x < kTileVectors; ++x) {
        Real* const at = weights + j * tile_width<Real>() + x * lanes<Real>();
        const auto kept = at_least(d, words + x * lanes<Real>(), threshold_);
        hn::Store(hn::IfThenElseZero(kept, hn::Mul(hn::Load(d, at), factor)), d, at);
      }
    }
  }

 private:
  static constexpr std::int64_t kNone = -1;

  /// Makes the words of four consecutive keys, which share a call.
  void know(std::int64_t keys) {
    if (keys == known_) return;
    known_ = keys;
    const PhiloxCall call{
        .seed = seed_, .keys = static_cast<std::uint32_t>(keys), .head = head_, .batch = batch_};
    fill_words(call, queries_.get(), width_, words_.get());
  }

  std::uint64_t seed_;
  std::uint32_t threshold_;
  Real factor_;
  std::int64_t width_;                   ///< the lanes, as whole vectors of words
  AlignedArray<std::uint32_t> queries_;  ///< (width)
  AlignedArray<std::uint32_t> words_;    ///< (4, width) of the keys 4 · known_ …
  std::uint32_t batch_ = 0, head_ = 0;
  std::int64_t known_ = kNone;
};

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
