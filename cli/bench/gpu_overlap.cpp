#include "cli/bench/gpu_overlap.h"

#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

void fill_in(const GpuBench& bench, const HopCase& one, const TimingOptions& options,
             Overlap& overlap) {
  const auto part = [&](HopPart which, int left_free) {
    HopCase of_part = one;
    of_part.part = which;
    of_part.left_free = left_free;
    return bench.gpu.hops(of_part).seconds;
  };
  const std::vector<Timing> timings =
      time_in_turn({{"kernel", {}, part(HopPart::kernel, 0)},
                    {"kernel alone", {}, part(HopPart::kernel, one.left_free)},
                    {"kernel under copies", {}, part(HopPart::kernel_of_both, one.left_free)},
                    {"copies", {}, part(HopPart::copies, one.left_free)},
                    {"both", {}, part(HopPart::both, one.left_free)}},
                   options);
  for (const Timing& timing : timings) {
    overlap.failure = timing.failure;
    if (!overlap.failure.empty()) return;
  }
  const double bytes = static_cast<double>(one.bytes) * one.copies;
  overlap.kernel_alone = inverse(timings[1].ratio, 1);
  overlap.kernel_under_copies = inverse(timings[2].ratio, 1);
  overlap.copies_alone_bytes_per_s = inverse(timings[3].seconds, bytes);
  // The copies outlast the kernel, so that both have ended when they have.
  overlap.copies_under_kernel_bytes_per_s = inverse(timings[4].seconds, bytes);
}

}  // namespace

std::string text_of(HopFrom from) {
  switch (from) {
    case HopFrom::device:
      return "copy engine, device memory";
    case HopFrom::host:
      return "copy engine, pinned host memory";
    case HopFrom::nccl:
      return "NCCL, to itself";
  }
  return "";
}

std::vector<OverlapOption> overlap_options() {
  return {{HopFrom::device, 0}, {HopFrom::host, 0}, {HopFrom::nccl, 0},
          {HopFrom::nccl, 4},   {HopFrom::nccl, 8}, {HopFrom::nccl, 16}};
}

Overlap measure_overlap(const GpuBench& bench, const OverlapOption& option,
                        const GpuCase& attention, const TimingOptions& options) {
  HopCase one{.attention = attention, .from = option.from, .left_free = option.left_free};
  one.bytes = attention.kv_bytes();
  Overlap overlap{.option = option};
  try {
    fill_in(bench, with_enough_copies(bench.gpu, one), options, overlap);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::environment) throw;
    overlap.failure = error.what();
  }
  return overlap;
}

}  // namespace ringlab::bench
