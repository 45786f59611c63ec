#include "optimized/bench/gpu/gpu_families.h"

#include <chrono>

namespace ringlab::bench {

void warm_up(const GpuBench& bench, const GpuWork& work) {
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  do {
    work.seconds();
  } while (passed() < bench.warm_up_s);
}

std::string wrong_results_of(const GpuWork& work) {
  const std::string wrong = work.wrong ? work.wrong() : "";
  return wrong.empty() ? "" : "wrong results: " + wrong;
}

std::vector<GoalFamily> gpu_families(const GpuBench& bench) {
  const auto with = [&bench](Findings (*measure)(const GpuBench&, const Plan&)) {
    return [&bench, measure](const Plan& plan) { return measure(bench, plan); };
  };
  return {{{"G1", "G2", "G3", "G4", "G5", "G6"}, "kernels", 60, with(measure_gpu_matches)},
          {{"G7"}, "ring, one shot", 40, with(measure_gpu_rings)},
          {{"G8"}, "kernel under copies", 4, with(measure_gpu_hops)},
          {{"G9"}, "steps", 10, with(measure_gpu_steps)}};
}

}  // namespace ringlab::bench
