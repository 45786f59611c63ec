#include "cli/bench/gpu/gpu_ladder.h"

#include <algorithm>
#include <cstddef>

namespace ringlab::bench {
namespace {

/// Steps, then the others, each in the order in which they came.
std::vector<GpuVersion> in_order(std::vector<GpuVersion> versions) {
  std::stable_partition(versions.begin(), versions.end(),
                        [](const GpuVersion& version) { return version.is_step; });
  return versions;
}

/// The kernel as it is: the last step.
std::size_t kernel_among(const std::vector<GpuVersion>& versions) {
  const auto steps = std::ranges::count_if(versions, &GpuVersion::is_step);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(steps, 1) - 1);
}

}  // namespace

std::vector<GpuCase> ladder_cases(bool quick) {
  std::vector<GpuCase> all;
  for (const std::int64_t head_dim : {64, 128}) {
    for (const char* mask : {"full", "causal"}) {
      all.push_back({.mask = mask,
                     .tokens = quick ? 4096 : 16384,
                     .head_dim = head_dim,
                     .q_heads = quick ? 16 : 64,
                     .kv_heads = quick ? 2 : 8});
    }
  }
  return all;
}

Ladder measure_ladder(const GpuBench& bench, const GpuCase& one, const TimingOptions& options) {
  const std::vector<GpuVersion> versions = in_order(bench.gpu.versions(one));
  Ladder ladder{.attention = one, .rungs = {}};
  if (versions.empty()) return ladder;
  const std::size_t kernel = kernel_among(versions);
  // Ratios are to the first contender, so that is the kernel; it comes again in its own place.
  std::vector<Contender> contenders = {{"kernel", {}, versions[kernel].work.seconds}};
  for (const GpuVersion& version : versions) {
    contenders.push_back({version.name, {}, version.work.seconds});
  }
  warm_up(bench, versions[kernel].work);
  const std::vector<Timing> timings = time_in_turn(contenders, options);
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const Timing& timing = timings[i + 1];
    LadderRung rung{.name = versions[i].name,
                    .what = versions[i].what,
                    .is_step = versions[i].is_step,
                    .flops_per_s = {},
                    .speed = {},
                    .failure = timing.failure};
    if (rung.failure.empty()) rung.failure = timings[0].failure;
    if (rung.failure.empty()) rung.failure = wrong_results_of(versions[i].work);
    if (rung.failure.empty()) {
      rung.flops_per_s = inverse(timing.seconds, one.flops());
      rung.speed = inverse(timing.ratio, 1);
    }
    ladder.rungs.push_back(rung);
  }
  return ladder;
}

}  // namespace ringlab::bench
