// The Hopper kernel in versions, one for each of its ideas, for `ringlab_goals gpu --ladder`.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "optimized/cuda/attention_call.h"
#include "optimized/cuda/stream.h"
#include "reference/core/small_float.h"

namespace ringlab::cuda {

/// Steps are cumulative: each has one idea more than the step before; the last step that takes a
/// call is forward_hopper() itself. Asides are the kernel with one thing changed.
enum class HopperVersionKind { step, aside };

struct HopperVersion {
  std::string_view name;  ///< "lazy rescaling"
  std::string_view what;  ///< what is done, in a few words
  HopperVersionKind kind = HopperVersionKind::step;
  std::int32_t channels = 128;         ///< head_dim and v_dim that it is compiled for: 64 or 128
  std::int32_t tile_queries = 128;     ///< of BlockMask::tiles
  bool needs_everything_seen = false;  ///< BlockMask::hides_nothing
  std::int32_t heads_together = 1;     ///< the query heads of a group are a multiple of this
  bool persistent = true;              ///< thread blocks stay and take tile after tile
  bool sections = true;  ///< heads come in sections whose K and V stay in the L2 cache
  double exp_error = 0;  ///< relative, of its weights; 0: that of hopper_profile()
};

/// All versions: the ladder for 64 channels, then the ladder for 128.
std::span<const HopperVersion> hopper_versions();

/// The forward pass by one of hopper_versions(); else as forward_hopper(). Input error for calls
/// that forward_hopper() or the version does not take.
void forward_hopper_version(const HopperVersion& version, const ForwardCall<BFloat16>& call,
                            Stream stream);

}  // namespace ringlab::cuda
