// The portable kernels on the emulated GPU, as functions.
#pragma once

#include <cstdint>

#include "optimized/cuda/attention_call.h"

namespace ringlab::cuda {

/// `seed` is the emulator's.
template <class Element>
struct PortableKernels {
  void (*forward)(const ForwardCall<Element>& call, std::uint64_t seed);
  void (*backward)(const BackwardCall<Element>& call, std::uint64_t seed);
};

template <class Element>
PortableKernels<Element> portable_kernels();

}  // namespace ringlab::cuda
