#include "optimized/bench/gpu/gpu_machine.h"

#include <algorithm>

#include "optimized/bench/gpu/gpu_comparisons.h"

namespace ringlab::bench {
namespace {

constexpr std::int64_t kLargeMatrix = 8192;
constexpr std::int64_t kOverlapTokens = 8192;

/// The median seconds of the work that `make` gives; 0 where this machine cannot do it.
double seconds_of(const std::function<GpuWork()>& make, const TimingOptions& options) {
  double seconds = 0;
  failure_of([&] {
    const Timing timing = time_in_turn({{"work", {}, make().seconds}}, options).front();
    if (timing.failure.empty()) seconds = timing.seconds.median;
  });
  return seconds;
}

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

}  // namespace

std::vector<GpuCase> speed_cases(bool quick) {
  std::vector<GpuCase> all;
  for (const std::int64_t head_dim : {64, 128}) {
    for (const char* mask : {"full", "causal"}) {
      for (const std::int64_t tokens : {1024, 4096, quick ? 8192 : 16384}) {
        all.push_back({.mask = mask, .tokens = tokens, .head_dim = head_dim});
      }
    }
  }
  return all;
}

PassSpeeds measure_passes(const GpuBench& bench, const GpuCase& one, const TimingOptions& options) {
  PassSpeeds speeds{.attention = one};
  const auto measure = [&] {
    GpuCase backward = one;
    backward.pass = Pass::backward;
    const GpuWork works[] = {bench.gpu.attention(one), bench.gpu.attention(backward)};
    warm_up(bench, works[0]);
    const std::vector<Timing> timings = time_in_turn(
        {{"forward", {}, works[0].seconds}, {"backward", {}, works[1].seconds}}, options);
    for (std::size_t i = 0; i < timings.size() && speeds.failure.empty(); ++i) {
      speeds.failure = timings[i].failure.empty() ? wrong_results_of(works[i]) : timings[i].failure;
    }
    if (!speeds.failure.empty()) return;
    speeds.forward = one.flops() / timings[0].seconds.median;
    speeds.backward = backward.flops() / timings[1].seconds.median;
  };
  const std::string failure = failure_of(measure);
  if (!failure.empty()) speeds.failure = failure;
  return speeds;
}

DeviceFigures measure_figures(const GpuBench& bench, const TimingOptions& options) {
  DeviceFigures figures;
  figures.block_s = seconds_of(
      [&] { return bench.gpu.attention({.tokens = 128, .q_heads = 1, .kv_heads = 1}); }, options);
  figures.product_flops =
      rate(matrix_flops(kLargeMatrix),
           seconds_of([&] { return bench.gpu.matrix_product(kLargeMatrix); }, options));
  const GpuCase attention{.tokens = kOverlapTokens};
  const Overlap device = measure_overlap(bench, {.from = HopFrom::device}, attention, options);
  const Overlap host = measure_overlap(bench, {.from = HopFrom::host}, attention, options);
  figures.memory_bytes_per_s = 2 * device.copies_alone_bytes_per_s.median;
  figures.host_bytes_per_s = host.copies_alone_bytes_per_s.median;
  if (device.failure.empty()) {
    figures.transfer_share =
        std::clamp(1 - device.kernel_under_copies.median / device.kernel_alone.median, 0.0, 1.0);
  }
  return figures;
}

}  // namespace ringlab::bench
