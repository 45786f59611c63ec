#include "optimized/bench/gpu/gpu_comparisons.h"

#include <fmt/format.h>

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

void fill_in(const GpuBench& bench, const HopCase& one, const TimingOptions& options,
             Overlap& overlap) {
  const auto part = [&](HopPart which, const cuda::ForwardGrid& grid) {
    HopCase of_part = one;
    of_part.part = which;
    of_part.grid = grid;
    return bench.gpu.hops(of_part).seconds;
  };
  const std::vector<Timing> timings =
      time_in_turn({{"kernel", {}, part(HopPart::kernel, {})},
                    {"kernel alone", {}, part(HopPart::kernel, one.grid)},
                    {"kernel under copies", {}, part(HopPart::kernel_of_both, one.grid)},
                    {"copies", {}, part(HopPart::copies, one.grid)},
                    {"both", {}, part(HopPart::both, one.grid)}},
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

std::vector<GpuCase> ladder_cases(bool quick) {
  std::vector<GpuCase> all;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const std::int64_t head_dim : {64, 128}) {
      for (const char* mask : {"full", "causal"}) {
        all.push_back({.pass = pass,
                       .mask = mask,
                       .tokens = quick ? 4096 : 16384,
                       .head_dim = head_dim,
                       .q_heads = quick ? 16 : 64,
                       .kv_heads = quick ? 2 : 8});
      }
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

std::string copies_text(const OverlapOption& option) {
  switch (option.from) {
    case HopFrom::device:
      return "cudaMemcpyAsync, device memory";
    case HopFrom::host:
      return "cudaMemcpyAsync, pinned host memory";
    case HopFrom::nccl:
      return option.nccl_blocks == 0
                 ? "NCCL, to itself"
                 : fmt::format("NCCL, to itself, {} block{}", option.nccl_blocks,
                               option.nccl_blocks == 1 ? "" : "s");
  }
  return "";
}

std::string text_of(const cuda::ForwardGrid& grid) {
  return grid.stays ? fmt::format("stays, {} left free", grid.left_free) : "a block per tile";
}

std::vector<OverlapOption> overlap_options() {
  std::vector<OverlapOption> all = {{HopFrom::device, {}}, {HopFrom::host, {}}};
  all.push_back({HopFrom::nccl, {.stays = false}});
  for (const int left_free : {0, 4, 8, 16}) {
    all.push_back({HopFrom::nccl, {.left_free = left_free}});
  }
  for (const int blocks : {1, 2, 4, 8}) all.push_back({HopFrom::nccl, {.left_free = 8}, blocks});
  return all;
}

Overlap measure_overlap(const GpuBench& bench, const OverlapOption& option,
                        const GpuCase& attention, const TimingOptions& options) {
  HopCase one{.attention = attention,
              .from = option.from,
              .grid = option.grid,
              .nccl_blocks = option.nccl_blocks};
  one.bytes = attention.kv_bytes();
  Overlap overlap{.option = option};
  const std::string failure =
      failure_of([&] { fill_in(bench, with_enough_copies(bench.gpu, one), options, overlap); });
  if (!failure.empty()) overlap.failure = failure;
  return overlap;
}

}  // namespace ringlab::bench
