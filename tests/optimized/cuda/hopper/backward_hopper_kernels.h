// The Hopper backward kernel on the emulated GPU, as a function.
#pragma once

#include <cstdint>

#include "optimized/cuda/attention_call.h"

namespace ringlab::cuda {

/// `seed` is the emulator's.
template <class Element>
void emulated_backward_hopper(const BackwardCall<Element>& call, std::uint64_t seed);

}  // namespace ringlab::cuda
