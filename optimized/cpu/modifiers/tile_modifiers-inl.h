// The modifiers of the scores and weights of one tile of queries, besides scale and mask:
// everything of reference/core/modifiers.h but sinks, which are states. Included once per target.
#if defined(RINGLAB_CPU_TILE_MODIFIERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGLAB_CPU_TILE_MODIFIERS_INL_H_
#undef RINGLAB_CPU_TILE_MODIFIERS_INL_H_
#else
#define RINGLAB_CPU_TILE_MODIFIERS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "optimized/cpu/base_2.h"
#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/forward_tile-inl.h"
#include "optimized/cpu/modifiers/alibi-inl.h"
#include "optimized/cpu/modifiers/dropout-inl.h"
#include "optimized/cpu/modifiers/soft_cap-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// The keys of a block of `run`, by their positions.
template <class Real>
PositionRun keys_of(const PositionRun& run, const KeyBlock<Real>& block) {
  return {run.first + block.first * run.stride, block.count, run.stride};
}

/// The modifiers of a tile. If there are none, they cost one test per block of keys.
template <class Real>
class TileModifiers {
 public:
  template <class Element>
  explicit TileModifiers(const Block<Element>& block)
      : shift_(block.mask.kv_tokens() - block.mask.q_tokens()), heads_(block.q.extents.heads) {
    if (!block.modifiers) return;
    const Modifiers& modifiers = *block.modifiers;
    if (modifiers.softcap != 0) {
      const double cap = in_base_2(modifiers.softcap);
      cap_ = {static_cast<Real>(cap), static_cast<Real>(1 / cap)};
    }
    for (const double slope : modifiers.alibi_slopes) {
      slopes_.push_back(static_cast<Real>(in_base_2(slope)));
    }
    if (!slopes_.empty()) distances_.emplace();
    if (modifiers.dropout != 0) dropout_.emplace(modifiers);
  }

  /// `head` counts the heads of all batches; `count` rows at these positions of the sequence of
  /// queries, lanes beyond them repeat the last.
  void load(std::int64_t head, const std::int64_t* positions, std::int64_t count) {
    head_ = head % heads_;
    if (distances_) distances_->load(positions, count, shift_);
    if (dropout_) dropout_->load(head / heads_, head_, positions, count);
  }

  bool caps() const { return cap_.cap != 0; }
  bool changes_scores() const { return caps() || distances_.has_value(); }

  /// scores (keys.count, lanes), in base 2, before any is hidden. `steepness`, if not null, becomes
  /// the derivative of soft-capping, where scores are capped.
  void change_scores(const PositionRun& keys, Real* scores, Real* steepness = nullptr) {
    if (caps()) soft_cap(cap_, keys.count * tile_width<Real>(), scores, steepness);
    if (distances_) {
      distances_->subtract(slopes_[static_cast<std::size_t>(head_)], keys, scores);
    }
  }
  /// weights (keys.count, lanes): weights of dropped pairs become 0, the others grow.
  void drop(const PositionRun& keys, Real* weights) {
    if (dropout_) dropout_->drop(keys, weights);
  }

 private:
  std::int64_t shift_, heads_, head_ = 0;
  SoftCap<Real> cap_ = {0, 0};
  std::vector<Real> slopes_;
  std::optional<DistanceLanes<Real>> distances_;
  std::optional<DropoutLanes<Real>> dropout_;
};

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
