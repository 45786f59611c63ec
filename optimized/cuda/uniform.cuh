// Values that all lanes of a warp have in common.
//
// ptxas sees that a number is such a value only where it comes from a shuffle, a constant or a
// parameter. It then keeps the number, and values computed from it, in the uniform registers of the
// warp: descriptors of operands have to be there, and every other one costs instructions that move
// it, between two products.
#pragma once

#include <cstdint>

#include "optimized/cuda/device_code.h"

namespace ringlab::cuda {

/// x, which must be the same in all lanes.
RINGLAB_KERNEL_CODE int uniform(int x) {
  return static_cast<int>(shuffle(static_cast<std::uint32_t>(x), 0));
}

/// True for all lanes when `mine` is true for one. All lanes.
RINGLAB_KERNEL_CODE bool any_lane(bool mine) {
  std::uint32_t any = mine ? 1 : 0;
  RINGLAB_UNROLL
  for (int mask = 1; mask < 32; mask *= 2) any |= shuffle(any, thread_index() % 32 ^ mask);
  return any != 0;
}

/// The number of a consumer: 0 for the warpgroup after the producer.
RINGLAB_KERNEL_CODE int consumer_number() { return uniform(thread_index() / 128 - 1); }

}  // namespace ringlab::cuda
