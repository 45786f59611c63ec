// The portable kernels on the emulated GPU, as functions.
#pragma once

#include <cstdint>
#include <functional>

#include "optimized/cuda/attention_call.h"

namespace ringlab::cuda {

/// `seed` is the emulator's.
template <class Element>
struct PortableKernels {
  std::function<void(const ForwardCall<Element>& call, std::uint64_t seed)> forward;
  std::function<void(const BackwardCall<Element>& call, std::uint64_t seed)> backward;
};

template <class Element>
PortableKernels<Element> portable_kernels();

}  // namespace ringlab::cuda
