// The versions of the forward kernel against each other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/bench/gpu/gpu_families.h"
#include "cli/bench/measure/timing.h"

namespace ringlab::bench {

struct LadderRung {
  std::string name;
  std::string what;
  bool is_step = true;
  Spread flops_per_s;
  Spread speed;              ///< over the kernel's, round by round
  std::string failure = {};  ///< why it has no figures; empty when it has
};

/// The versions of one case: first steps, each with one idea more, up to the kernel as it is.
struct Ladder {
  GpuCase attention;
  std::vector<LadderRung> rungs;
};

/// 64 and 128 channels, full and causal.
std::vector<GpuCase> ladder_cases(bool quick);

/// Everything in turn. Environment error where the device has no such kernel.
Ladder measure_ladder(const GpuBench& bench, const GpuCase& one, const TimingOptions& options);

}  // namespace ringlab::bench
