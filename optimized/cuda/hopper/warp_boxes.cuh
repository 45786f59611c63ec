// Sixteen rows of a box as a warp loads them by ldmatrix and stores them by stmatrix: in fragments.
//
// Lane l gives the address of 16 bytes: of row l % 16, channels 16 step … + 7 for lanes 0-15 and the
// next eight for lanes 16-31. These are the fragments of a left operand of wgmma, and of 16
// channels of its accumulators: rows g and g + 8 of channels 2 t, then of channels 2 t + 8.
#pragma once

#include <cstdint>

#include "optimized/cuda/device_code.h"
#include "optimized/cuda/hopper/descriptor.h"

namespace ringlab::cuda {

inline constexpr int kWarpRows = 16;
inline constexpr int kWarpBoxBytes = kWarpRows * static_cast<int>(kBoxRowBytes);

/// Offset in bytes of the lane's 16 bytes from the first of the warp's rows, in the box of
/// `channel`, a multiple of 16.
RINGLAB_KERNEL_CODE std::uint32_t fragment_place(int channel) {
  const int lane = thread_index() % 32;
  const int unit = channel % kBoxChannels / 8 + lane / 16;
  return swizzle_128(
      static_cast<std::uint32_t>(lane % 16 * static_cast<int>(kBoxRowBytes) + unit * 16));
}

}  // namespace ringlab::cuda
