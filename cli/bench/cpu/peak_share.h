// What share of the processor's peak some work reaches, on one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/bench/cpu/peak_loop.h"
#include "cli/bench/measure/timing.h"

namespace ringlab::bench {

/// Some work of which the operations are known.
struct Counted {
  std::string id;
  double flops;
  std::function<void()> work;
};

struct PeakShare {
  Spread share, gflops_per_s, peak_gflops_per_s;
};

/// Each one's share of the peak, taken in turn with it. At least one.
std::vector<PeakShare> shares_of_peak(Operation operation, const std::vector<Counted>& all,
                                      const TimingOptions& timing);

}  // namespace ringlab::bench
