#include "cli/bench/gpu/gpu_overlap.h"

#include <fmt/format.h>

#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

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
  try {
    fill_in(bench, with_enough_copies(bench.gpu, one), options, overlap);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::environment) throw;
    overlap.failure = error.what();
  }
  return overlap;
}

}  // namespace ringlab::bench
