// G7, G8 and G9: what a ring costs beyond one shot, and what copies beside kernels cost.
#include <algorithm>
#include <cmath>

#include "optimized/bench/gpu/gpu_families.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

/// Environment error with the failure of the first timing that has one.
void check_timed(const std::vector<Timing>& timings) {
  for (const Timing& timing : timings) {
    if (timing.failure.empty()) continue;
    throw_environment_error(
        {.where = timing.name, .expected = "its time", .actual = timing.failure});
  }
}

void measure_ring_of(const GpuBench& bench, const Goal& goal, bool quick,
                     const TimingOptions& options, Findings& findings) {
  const std::string& id = goal.id;
  const int ranks = goal.of.ranks;
  const std::int64_t chunk = quick ? 4096 : 8192;
  const GpuCase one{.mask = "causal", .tokens = ranks * chunk, .q_heads = 16, .kv_heads = 2};
  const auto timed = [&](int of, RingClock clock) { return bench.gpu.ring(one, of, clock); };
  const GpuWork ring = timed(ranks, RingClock::device), shot = timed(1, RingClock::device);
  const GpuWork ring_by_host = timed(ranks, RingClock::host),
                shot_by_host = timed(1, RingClock::host);
  const GpuWork kernel = bench.gpu.attention(one);
  warm_up(bench, shot);
  const std::vector<Timing> timings =
      time_in_turn({{"ring", {}, ring.seconds},
                    {"one shot", {}, shot.seconds},
                    {"ring, host's clock", {}, ring_by_host.seconds},
                    {"one shot, host's clock", {}, shot_by_host.seconds},
                    {"kernel", {}, kernel.seconds}},
                   options);
  check_timed(timings);
  findings.by(id, ring.kernel);
  findings.reached(id, timings[1].ratio);
  findings.beside(id, "ms", scaled(timings[0].seconds, 1e3));
  findings.beside(id, "TFLOP/s", inverse(timings[0].seconds, one.flops() * 1e-12));
  findings.beside(id, "kernel alone, TFLOP/s", inverse(timings[4].seconds, one.flops() * 1e-12));
  findings.beside(id, "host, ms", scaled(timings[2].seconds, 1e3));
  findings.beside(id, "one shot, host, ms", scaled(timings[3].seconds, 1e3));
}

void measure_hop(const GpuBench& bench, const Goal& goal, bool quick, const TimingOptions& options,
                 Findings& findings) {
  const std::string& id = goal.id;
  HopCase one{.attention = {.tokens = quick ? 4096 : 8192},
              .from = goal.of.beside == "device" ? HopFrom::device : HopFrom::host};
  one.bytes = one.attention.kv_bytes();
  one.part = HopPart::kernel;
  warm_up(bench, bench.gpu.hops(one));
  one = with_enough_copies(bench.gpu, one);
  const auto part = [&](HopPart which) {
    HopCase of_part = one;
    of_part.part = which;
    return bench.gpu.hops(of_part);
  };
  const GpuWork alone = part(HopPart::kernel), under = part(HopPart::kernel_of_both),
                copies = part(HopPart::copies);
  const std::vector<Timing> timings = time_in_turn({{"kernel", {}, alone.seconds},
                                                    {"kernel under copies", {}, under.seconds},
                                                    {"copies", {}, copies.seconds}},
                                                   options);
  check_timed(timings);
  findings.by(id, alone.kernel);
  findings.reached(id, timings[1].ratio);
  findings.beside(id, "ms", scaled(timings[0].seconds, 1e3));
  findings.beside(id, "TFLOP/s", inverse(timings[0].seconds, one.attention.flops() * 1e-12));
  const double bytes = static_cast<double>(one.bytes) * one.copies;
  findings.beside(id, "copies, GB/s", inverse(timings[2].seconds, bytes * 1e-9));
}

/// Times of a step and of its parts, measured in turn.
struct TimedSteps {
  std::vector<Timing> timings;  ///< both, kernels, copies
  int steps = 1;
  std::string kernel = {};
};

TimedSteps time_steps(const GpuBench& bench, const TimingOptions& options, std::int64_t chunk) {
  constexpr int kSteps = 4;
  HopCase one{.attention = {.tokens = chunk, .q_heads = 8, .kv_heads = 8}, .steps = kSteps};
  one.bytes = one.attention.kv_bytes();
  const auto part = [&](HopPart which) {
    one.part = which;
    return bench.gpu.hops(one);
  };
  const GpuWork both = part(HopPart::both), kernels = part(HopPart::kernel),
                copies = part(HopPart::copies);
  warm_up(bench, both);
  TimedSteps times{time_in_turn({{"steps", {}, both.seconds},
                                 {"kernels", {}, kernels.seconds},
                                 {"copies", {}, copies.seconds}},
                                options),
                   kSteps, kernels.kernel};
  check_timed(times.timings);
  return times;
}

/// Seconds of a step beyond its longer part, where kernel and copy are short.
double step_overhead(const GpuBench& bench, const Plan& plan) {
  constexpr std::int64_t kShort = 128;
  bench.gpu.about("G9");
  const TimedSteps times = time_steps(bench, {.rounds = plan.rounds}, kShort);
  const auto median = [&](std::size_t i) { return times.timings[i].seconds.median; };
  return std::max(0.0, median(0) - std::max(median(1), median(2))) / times.steps;
}

/// |model over measured - 1|, from the ratios of the parts to the whole.
Spread model_error(const TimedSteps& times, double overhead_s) {
  const double overhead = overhead_s * times.steps / times.timings[0].seconds.median;
  const Spread &kernels = times.timings[1].ratio, &copies = times.timings[2].ratio;
  const auto error = [&](double kernel, double copy) {
    return std::fabs(std::max(kernel, copy) + overhead - 1);
  };
  const double middle = error(kernels.median, copies.median);
  const double low = error(kernels.p10, copies.p10), high = error(kernels.p90, copies.p90);
  return {middle, std::min({low, middle, high}), std::max({low, middle, high})};
}

void measure_step(const GpuBench& bench, const Goal& goal, double overhead_s,
                  const TimingOptions& options, Findings& findings) {
  const std::string& id = goal.id;
  const TimedSteps times = time_steps(bench, options, goal.of.tokens);
  findings.by(id, times.kernel);
  findings.reached(id, model_error(times, overhead_s));
  const double per_step_ms = 1e3 / times.steps;
  findings.beside(id, "ms", scaled(times.timings[0].seconds, per_step_ms));
  findings.beside(id, "kernel, ms", scaled(times.timings[1].seconds, per_step_ms));
  findings.beside(id, "copy, ms", scaled(times.timings[2].seconds, per_step_ms));
  const double overhead_ms = overhead_s * 1e3;
  findings.beside(id, "overhead, ms", {overhead_ms, overhead_ms, overhead_ms});
}

}  // namespace

HopCase with_enough_copies(Gpu& gpu, HopCase one) {
  constexpr double kLonger = 1.5;
  constexpr double kMostCopies = 4096;
  const auto seconds_of = [&](HopPart part) {
    one.part = part;
    const GpuWork work = gpu.hops(one);
    work.seconds();  // the first time takes longer
    return work.seconds();
  };
  const double kernel_s = seconds_of(HopPart::kernel);
  const double copy_s = seconds_of(HopPart::copies);
  const double copies = std::ceil(kLonger * kernel_s / copy_s);
  one.copies = static_cast<int>(std::clamp(copies, 1.0, kMostCopies));
  return one;
}

Findings measure_gpu_rings(const GpuBench& bench, const Plan& plan) {
  return plan.for_each([&](const Goal& goal, const TimingOptions& options, Findings& findings) {
    bench.gpu.about(goal.id);
    measure_ring_of(bench, goal, plan.quick, options, findings);
  });
}

Findings measure_gpu_hops(const GpuBench& bench, const Plan& plan) {
  return plan.for_each([&](const Goal& goal, const TimingOptions& options, Findings& findings) {
    bench.gpu.about(goal.id);
    measure_hop(bench, goal, plan.quick, options, findings);
  });
}

Findings measure_gpu_steps(const GpuBench& bench, const Plan& plan) {
  const double overhead_s = step_overhead(bench, plan);
  return plan.for_each([&](const Goal& goal, const TimingOptions& options, Findings& findings) {
    bench.gpu.about(goal.id);
    measure_step(bench, goal, overhead_s, options, findings);
  });
}

}  // namespace ringlab::bench
