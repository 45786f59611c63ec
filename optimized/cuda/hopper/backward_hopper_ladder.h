// The Hopper backward kernel in versions, for `ringlab_goals gpu --ladder`.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "optimized/cuda/attention_call.h"
#include "optimized/cuda/hopper/forward_hopper_ladder.h"
#include "optimized/cuda/stream.h"
#include "reference/core/small_float.h"

namespace ringlab::cuda {

struct HopperBackwardVersion {
  std::string_view name;  ///< "boxes of dQ"
  std::string_view what;  ///< what is done, in a few words
  HopperVersionKind kind = HopperVersionKind::step;
  std::int32_t channels = 128;  ///< head_dim and v_dim that it is compiled for: 64 or 128
  bool by_heads = false;        ///< order_by_heads(); else order_by_groups()
};

/// All versions: for 64 channels, then for 128.
std::span<const HopperBackwardVersion> hopper_backward_versions();

/// The backward pass by one of hopper_backward_versions(), never deterministic; else as
/// backward_hopper(). Input error for calls that backward_hopper() does not take, or with more
/// channels than the version.
void backward_hopper_version(const HopperBackwardVersion& version,
                             const BackwardCall<BFloat16>& call, Stream stream);

}  // namespace ringlab::cuda
