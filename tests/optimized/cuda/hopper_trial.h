// The trials of ring_trial.h for the Hopper kernel.
#pragma once

#include <cstdint>
#include <string>

#include "tests/optimized/cuda/hopper_kernels.h"
#include "tests/optimized/cuda/ring_trial.h"

namespace ringlab::cuda {

/// Every rank's queries meet every chunk, the state is carried; what has not been written is NaN.
template <class Element>
AttentionOutput run_hopper(const RingTrial& trial, EmulatedHopper<Element> kernel,
                           const EmulatedGrid& grid);

/// The trial with its keys in the opposite order: late maxima become early ones, which the kernel,
/// walking backwards, meets last.
RingTrial backwards(RingTrial trial);

/// Empty, or what is wrong with it by the bounds of hopper_profile().
std::string judge_hopper(const RingTrial& trial, const AttentionOutput& got);

}  // namespace ringlab::cuda
