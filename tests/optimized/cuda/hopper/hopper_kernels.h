// The Hopper kernel on the emulated GPU, as a function.
#pragma once

#include <cstdint>
#include <functional>

#include "optimized/cuda/attention_call.h"

namespace ringlab::cuda {

/// `blocks`: thread blocks of the persistent grid. `seed` is the emulator's.
struct EmulatedGrid {
  int blocks = 1;
  std::uint64_t seed = 0;
};

template <class Element>
using EmulatedHopper =
    std::function<void(const ForwardCall<Element>& call, const EmulatedGrid& grid)>;

template <class Element>
void emulated_forward_hopper(const ForwardCall<Element>& call, const EmulatedGrid& grid);

/// The kernel with the tactics that it does not have as it is, up to 64 channels.
void emulated_tactical_hopper(const ForwardCall<BFloat16>& call, const EmulatedGrid& grid);
/// The kernel in clusters of two blocks, up to 64 channels; query heads in even groups.
void emulated_paired_hopper(const ForwardCall<BFloat16>& call, const EmulatedGrid& grid);

}  // namespace ringlab::cuda
