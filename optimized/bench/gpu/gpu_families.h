// The measurements behind the goals of devices.
#pragma once

#include <vector>

#include "optimized/bench/gpu/gpu.h"
#include "optimized/bench/measure/families.h"

namespace ringlab::bench {

/// The device that the families measure, and its warm-up. Device and object outlive the families.
struct GpuBench {
  Gpu& gpu;
  double warm_up_s = 0.2;  ///< before anything is timed
};

/// The families that measure gpu_goals().
std::vector<GoalFamily> gpu_families(const GpuBench& bench);

Findings measure_gpu_matches(const GpuBench& bench, const Plan& plan);  ///< G1 to G6
Findings measure_gpu_rings(const GpuBench& bench, const Plan& plan);    ///< G7
Findings measure_gpu_hops(const GpuBench& bench, const Plan& plan);     ///< G8
Findings measure_gpu_steps(const GpuBench& bench, const Plan& plan);    ///< G9

/// The case with so many copies that they outlast the kernel.
HopCase with_enough_copies(Gpu& gpu, HopCase one);

/// Repeats the work until so much time has passed, once at least: clocks rise under load.
void warm_up(const GpuBench& bench, const GpuWork& work);

}  // namespace ringlab::bench
