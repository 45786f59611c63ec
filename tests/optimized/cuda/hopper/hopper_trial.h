// The trials of ring_trial.h for the Hopper kernel.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "optimized/cuda/hopper/backward_hopper_ladder.h"
#include "optimized/cuda/hopper/forward_hopper_ladder.h"
#include "tests/optimized/cuda/hopper/hopper_kernels.h"
#include "tests/optimized/cuda/ring_trial.h"

namespace ringlab::cuda {

/// Every rank's queries meet every chunk, the state is carried; what has not been written is NaN.
/// `tile_queries`: of the mask's tiles; 0 for those of the kernel as it is.
template <class Element>
AttentionOutput run_hopper(const RingTrial& trial, const EmulatedHopper<Element>& kernel,
                           const EmulatedGrid& grid, std::int32_t tile_queries = 0);

/// The trial with its keys in the opposite order: late maxima become early ones, which the kernel,
/// walking backwards, meets last.
RingTrial backwards(RingTrial trial);

/// Empty, or what is wrong with it by the bounds of hopper_profile(), with weights that are off by
/// `exp_error` besides.
std::string judge_hopper(const RingTrial& trial, const AttentionOutput& got, double exp_error = 0);

/// The version's name and channels, as a test's: "lazy_rescaling_64".
std::string label(std::string_view name, std::int32_t channels);
inline std::string label(const HopperVersion& v) { return label(v.name, v.channels); }
inline std::string label(const HopperBackwardVersion& v) { return label(v.name, v.channels); }
inline void PrintTo(const HopperVersion& version, std::ostream* out) { *out << label(version); }
inline void PrintTo(const HopperBackwardVersion& version, std::ostream* out) {
  *out << label(version);
}

}  // namespace ringlab::cuda
